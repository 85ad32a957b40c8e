/** The API server is down: running DNS servers continue, and new ones have no data. */
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { equal, type Act, type Story } from '../story.ts';
import { countAnswered, UdpClient } from '../udp-client.ts';

const NAME = 'kube-dns.kube-system.svc.cluster.local.';
const OUTSIDE = 'api.example.com.';
const DNS = 'kube-system/dns-1';
const TRIES = 10;
const internet = [
  { name: 'api.example.com', type: 'A', answer: '203.0.113.80' },
  { name: 'api.example.com', answer: 'NODATA' },
];
const prompt = usualCorefile.replace('lameduck 5s', 'lameduck 0s');
const withSnapshot = prompt.replace(
  '        ttl 30\n',
  '        ttl 30\n        snapshot /run/ndots-lab/snapshot\n',
);

async function answers(lab: LabCluster, name: string, server = '10.244.1.53'): Promise<number> {
  const client = await UdpClient.open(lab.network.path(lab.pod('client').name), server);
  const count = await countAnswered(client, name, TRIES, 400);
  client.close();
  return count;
}

export const apiRestart: Story = {
  name: 'api-restart',
  title: 'the API server is away',
  source: 'Kubernetes DNS horror stories (Datadog); coredns issues 2464 and 4014',
  preconditions: [
    'a DNS server that has listed the objects of the cluster',
    'the API server stops',
  ],
  trigger: 'the API server ends, and then the DNS server is restarted',
  needs: [],
  seconds: 20,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const isNdots = stage.server === 'ndots';
    const lab = await stage.start({
      objects,
      internet,
      corefile: isNdots ? withSnapshot : prompt,
      ipv6: false,
    });
    const before = await answers(lab, NAME);
    lab.stopApi();
    const during = await answers(lab, NAME);
    // On SIGTERM it writes its data to the snapshot.
    await lab.stopDns(DNS, 'SIGTERM');
    await lab.startDns(DNS, prompt, OUTSIDE);
    const [inside, outside] = [await answers(lab, NAME), await answers(lab, OUTSIDE)];
    const act = (kind: Act['kind'], title: string, facts: Act['facts']): Act => ({
      kind,
      title,
      packets: [],
      facts,
      command: `dig @10.244.1.53 ${NAME}`,
    });
    const acts = [
      act('cure', 'a running server continues', [
        equal(`answers of ${TRIES} before`, TRIES, before),
        equal(`answers of ${TRIES} without the API server`, TRIES, during),
      ]),
      act('flaw', 'a server started then does not know the cluster', [
        equal(`answers of ${TRIES} for a name of the cluster`, 0, inside),
        equal(`answers of ${TRIES} for a name of the internet`, TRIES, outside),
      ]),
    ];
    if (!isNdots) return acts;
    await lab.stopDns(DNS);
    await lab.startDns(DNS, withSnapshot, NAME);
    return [
      ...acts,
      act('cure', 'kubernetes { snapshot FILE }: it has the former data', [
        equal(`answers of ${TRIES} for a name of the cluster`, TRIES, await answers(lab, NAME)),
      ]),
    ];
  },
  model: null,
};
