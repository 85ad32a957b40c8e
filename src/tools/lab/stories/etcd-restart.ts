/** SkyDNS as in the first clusters: service names are in etcd, and etcd is down. */
import { clientPod, INTERNET, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, holds, type Act, type Story } from '../story.ts';
import { countAnswered, UdpClient } from '../udp-client.ts';

const NAME = 'backend.critical-app.svc.cluster.local.';
const VIP = '10.3.0.116';
const ETCD_IP = '10.244.1.7';
const DNS = 'kube-system/dns-1';
const TRIES = 6;
const corefile = (more: string): string => `.:53 {
    errors
    etcd cluster.local {
        path /skydns
        endpoint http://${ETCD_IP}:2379
${more}    }
    forward . ${INTERNET}
}
`;

async function answers(lab: LabCluster): Promise<number> {
  const client = await UdpClient.open(lab.network.path(lab.pod('client').name), '10.244.1.53');
  const count = await countAnswered(client, NAME, TRIES, 600);
  client.close();
  return count;
}

export const etcdRestart: Story = {
  name: 'etcd-restart',
  title: 'names in etcd, and etcd is away',
  source: 'Understanding how Kubernetes DNS services work (Sysdig, 2016): SkyDNS',
  preconditions: [
    `the address ${VIP} of critical-app/backend stands in etcd, at /skydns/local/cluster/svc/critical-app/backend`,
    'a DNS server with the plugin etcd',
  ],
  trigger: 'curl’s query for backend, before and after etcd is killed',
  needs: [{ program: 'etcd' }],
  seconds: 16,
  async play(stage) {
    const isNdots = stage.server === 'ndots';
    const objects =
      usualObjects() +
      clientPod('critical-app', 'client', '10.244.1.4') +
      clientPod('critical-app', 'etcd', ETCD_IP);
    const lab = await stage.start({ objects, ipv6: false });
    const url = `http://${ETCD_IP}:2379`;
    const start = (): { stop(): Promise<void> } =>
      lab.background('etcd', [
        'etcd',
        '--data-dir',
        '/run/ndots-lab/etcd',
        '--listen-client-urls',
        url,
        '--advertise-client-urls',
        url,
        '--listen-peer-urls',
        'http://127.0.0.1:2380',
        '--log-level',
        'error',
      ]);
    const put = async (): Promise<number> => {
      const record = [
        `5c82f78b.${NAME.slice(0, -1)}`,
        VIP,
        '--priority',
        '10',
        '--weight',
        '10',
        '--ttl',
        '30',
      ];
      for (let tries = 0; tries < 20; tries++) {
        const { code } = await lab.execLater('client', [
          ...stage.ndots,
          'etcd',
          'put',
          ...record,
          '--endpoints',
          url,
        ]);
        if (code === 0) return code;
      }
      return 2;
    };
    const serve = async (more: string): Promise<void> => {
      await lab.stopDns(DNS);
      await lab.startDns(DNS, corefile(more), NAME);
    };
    const etcd = start();
    const stored = await put();
    await serve(isNdots ? '        per_query\n' : '');
    const before = await answers(lab);
    await etcd.stop();
    const without = await answers(lab);
    const act = (kind: Act['kind'], title: string, facts: Act['facts']): Act => ({
      kind,
      title,
      packets: [],
      facts,
      command: `dig @10.244.1.53 ${NAME}`,
    });
    const acts = [
      act('flaw', 'etcd is queried for each query', [
        holds('the record is stored', stored === 0),
        equal(`answers of ${TRIES} before`, TRIES, before),
        equal(`answers of ${TRIES} without etcd`, 0, without),
      ]),
    ];
    if (!isNdots) return acts;
    const again = start();
    await put();
    await serve('');
    const followed = await answers(lab);
    await again.stop();
    return [
      ...acts,
      act('cure', 'etcd is watched, and answers come from memory', [
        equal(`answers of ${TRIES} before`, TRIES, followed),
        equal(`answers of ${TRIES} without etcd`, TRIES, await answers(lab)),
      ]),
    ];
  },
  model: null,
};
