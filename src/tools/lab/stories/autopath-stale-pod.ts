/**
 * autopath mistakes a client for an earlier pod with the same address: one replica finds the name, the other
 * answers NXDOMAIN.
 */
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, type Act, type Fact, type Story } from '../story.ts';
import { UdpClient } from '../udp-client.ts';

const IP = '10.244.1.4';
/** The first query of a client in `default` that looks up api.twilio.com. */
const FIRST = 'api.twilio.com.default.svc.cluster.local.';
const REPLICAS = ['10.244.1.53', '10.244.2.53'] as const;
const DNS = ['kube-system/dns-1', 'kube-system/dns-2'] as const;

const byAddress = usualCorefile
  .replace('pods insecure', 'pods verified')
  .replace('    forward', '    autopath @kubernetes\n    forward');
const byName = usualCorefile.replace('    forward', '    autopath @name\n    forward');

const internet = [
  { name: 'api.twilio.com', type: 'A', answer: '18.208.54.140' },
  { name: 'api.twilio.com', type: 'AAAA', answer: '2001:db8::140' },
];

/** A finished pod in another namespace, whose address was reassigned. */
const former = {
  metadata: { namespace: 'argo-events', name: 'webhook-j78g2' },
  spec: { nodeName: 'node-1' },
  status: { phase: 'Running', podIP: IP, podIPs: [{ ip: IP }] },
};

const words = new Map([
  [0, 'NOERROR'],
  [3, 'NXDOMAIN'],
]);

async function ask(lab: LabCluster): Promise<readonly string[]> {
  const found: string[] = [];
  for (const server of REPLICAS) {
    const client = await UdpClient.open(lab.network.path(lab.pod('default/client').name), server);
    for (const type of ['A', 'AAAA']) {
      const { rcode } = await client.ask(FIRST, type, 3000);
      found.push(rcode === null ? 'silence' : (words.get(rcode) ?? `code ${rcode}`));
    }
    client.close();
  }
  return found;
}

function facts(found: readonly string[], second: string): readonly Fact[] {
  return [
    equal('the first replica, A and AAAA', 'NOERROR NOERROR', found.slice(0, 2).join(' ')),
    equal('the second replica, A and AAAA', `${second} ${second}`, found.slice(2).join(' ')),
  ];
}

export const autopathStalePod: Story = {
  name: 'autopath-stale-pod',
  title: 'autopath and a pod that had the address before',
  source: 'DNS issues in Kubernetes: autopath; coredns issues 2842 and 3765',
  preconditions: [
    'autopath @kubernetes, which looks up the namespace of the pod with the client’s address',
    `a pod of the namespace argo-events had the address ${IP} that a pod of default has now`,
    'two replicas, one of which does not know it yet',
  ],
  trigger: `the client asks both for ${FIRST}`,
  needs: [],
  seconds: 10,
  async play(stage) {
    const client = clientPod('default', 'client', IP);
    const lab = await stage.start({
      objects: usualObjects(2) + client,
      internet,
      corefile: usualCorefile,
    });
    const now = lab.api.of('Pod').find(({ status }) => JSON.stringify(status).includes(IP))!;
    const isNdots = stage.server === 'ndots';
    await lab.stopDns(DNS[0]);
    await lab.stopDns(DNS[1]);
    // The second replica gets the event of the former pod, and no event after it.
    lab.api.delete('Pod', now);
    lab.api.put('Namespace', { metadata: { name: 'argo-events' } });
    lab.api.put('Pod', former);
    await lab.startDns(DNS[1], byAddress);
    lab.api.freezeWatches();
    lab.api.delete('Pod', former);
    lab.api.put('Pod', now);
    await lab.startDns(DNS[0], byAddress);
    const flaw = await ask(lab);
    const act = (
      kind: Act['kind'],
      title: string,
      found: readonly string[],
      second: string,
    ): Act => ({
      kind,
      title,
      packets: [],
      command: REPLICAS.map((server) => `dig @${server} ${FIRST}`).join('; '),
      facts: facts(found, second),
    });
    const acts = [act('flaw', 'autopath @kubernetes: the replicas disagree', flaw, 'NXDOMAIN')];
    if (!isNdots) return acts;
    await lab.stopDns(DNS[1]);
    await lab.stopDns(DNS[0]);
    lab.api.delete('Pod', now);
    lab.api.put('Pod', former);
    await lab.startDns(DNS[1], byName);
    lab.api.freezeWatches();
    lab.api.delete('Pod', former);
    lab.api.put('Pod', now);
    await lab.startDns(DNS[0], byName);
    return [
      ...acts,
      act('cure', 'autopath @name: the name shows its origin', await ask(lab), 'NOERROR'),
    ];
  },
  model: null,
};
