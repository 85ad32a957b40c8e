/** A DNS pod is gone, and the kernel still sends packets of old connections to it. */
import { forgetConnections } from '../conntrack.ts';
import { clientPod, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, within, type Act, type Story } from '../story.ts';
import { countAnswered, UdpClient } from '../udp-client.ts';
import { ConntrackTable, kernelOf } from '../proxy-rules/conntrack.ts';
import { withEndpoints } from '../endpoints.ts';

const NAME = 'kubernetes.default.svc.cluster.local.';
const SERVICE = 'kube-system/kube-dns';
const PORT = 40_000;
const TRIES = 6;

function answered(client: UdpClient): Promise<number> {
  return countAnswered(client, NAME, TRIES, 500);
}

/** Removes the first DNS pod and its machine, so that the service has only the second. */
async function loseFirst(lab: LabCluster): Promise<void> {
  await lab.stopDns('kube-system/dns-1');
  lab.network.batch(lab.pod('kube-system/dns-1').name, ['link set eth0 down']);
  lab.change({ slices: withEndpoints(lab.objects.slices, SERVICE, ['10.244.2.53']) });
}

export const staleConntrack: Story = {
  name: 'stale-conntrack',
  title: 'a DNS pod is gone, and old connections still lead there',
  source: 'Preply’s post-mortem of 2020-02-28; kubernetes issues 19029 and 125467',
  preconditions: [
    'two DNS pods on two nodes',
    'a client that reuses its source port, as Envoy, nginx and statsd do',
    'service rules apply only to new connections: the kernel remembers the target of an old one',
  ],
  trigger: 'the pod of the client’s connection is deleted, but the connection’s entry is not',
  needs: [
    { program: 'conntrack' },
    { rule: '-A PREROUTING -m conntrack --ctstate NEW -j RETURN', part: 'connection tracking' },
  ],
  seconds: 14,
  async play(stage) {
    const lab = await stage.start({
      objects: usualObjects(2) + clientPod('default', 'client', '10.244.1.4'),
    });
    const { name: machine, node } = lab.pod('client');
    const namespace = lab.network.path(machine);
    const server = lab.serviceAddress(SERVICE);
    const all = lab.objects.slices;
    // The connection is created while the first pod is the only one.
    lab.change({ slices: withEndpoints(lab.objects.slices, SERVICE, ['10.244.1.53']) });
    const sticky = await UdpClient.open(namespace, server, PORT);
    const before = await answered(sticky);
    lab.change({
      slices: withEndpoints(lab.objects.slices, SERVICE, ['10.244.1.53', '10.244.2.53'], all),
    });
    await loseFirst(lab);
    const after = await answered(sticky);
    const fresh = await UdpClient.open(namespace, server);
    const freshAfter = await answered(fresh);
    fresh.close();
    const entry = lab.network.run(node, [
      'sh',
      '-c',
      `conntrack -L -p udp --orig-port-src ${PORT} 2>/dev/null`,
    ]);
    const leadsTo = /src=\S+ dst=\S+ sport=\d+ dport=53 .*?src=(\S+)/.exec(entry)?.[1] ?? 'nowhere';
    // The same removal as kube-proxy's for UDP services when an endpoint is removed.
    const removed = forgetConnections(lab, node, server, '10.244.1.53');
    const fixed = await answered(sticky);
    sticky.close();
    const act = (kind: Act['kind'], title: string, command: string, facts: Act['facts']): Act => ({
      kind,
      title,
      command,
      facts,
      packets: [],
    });
    return [
      act('flaw', 'the entry stays', `dig -b 0.0.0.0#${PORT} @${server} ${NAME}`, [
        equal('answers before', TRIES, before),
        equal('answers to the old port after', 0, after),
        equal('answers to another port', TRIES, freshAfter),
        equal('target of the old port’s packets', '10.244.1.53', leadsTo),
      ]),
      act('cure', 'the entry is deleted, as kube-proxy does', removed.command, [
        equal('conntrack’s exit code', 0, removed.code),
        equal('answers to the old port', TRIES, fixed),
      ]),
    ];
  },
  model() {
    // Queries at this interval from one port: every packet prolongs the entry, answered or not.
    const lasts = (everySeconds: number): number => {
      const table = new ConntrackTable(kernelOf('6.18'));
      table.packet('flow', 'original', 0);
      table.packet('flow', 'reply', 1);
      for (let at = everySeconds; at < 3600; at += everySeconds)
        if (table.packet('flow', 'original', at * 1000) === 'new') return at;
      return 3600;
    };
    const acts: readonly Act[] = [
      {
        kind: 'flaw',
        title: 'a query each second prolongs the entry, answered or not',
        command: `dig -b 0.0.0.0#${PORT}`,
        packets: [],
        facts: [equal('seconds per hour without answers', 3600, lasts(1))],
      },
      {
        kind: 'cure',
        title: 'a pause longer than the entry’s time-out (30 s, or 120 s of a stream)',
        command: `dig -b 0.0.0.0#${PORT}`,
        packets: [],
        facts: [within('seconds until the next query finds the new pod', [31, 121], lasts(121))],
      },
    ];
    return Promise.resolve(acts);
  },
};
