/**
 * A cloud's resolver accepts 1 024 packets per second from one machine, and a DNS server without a cache
 * sends more.
 */
import { clientPod, INTERNET, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { limitPackets, lostBy } from '../faults.ts';
import { load, type LoadPlan } from '../load.ts';
import { within, type Act, type Stage, type Story } from '../story.ts';

const LIMIT = 1024;
const RATE = 1600;
const SECONDS = 2.5;
const NAMES = 40;
const DNS = 'kube-system/dns-1';

const withoutCache = usualCorefile.replace(/ {4}cache[^]*?\n {4}}\n/, '');
const withTcp = withoutCache.replace(
  `forward . ${INTERNET}`,
  `forward . ${INTERNET} {\n        force_tcp\n    }`,
);
const internet = [
  { name: '*.example.com.', type: 'A', answer: '203.0.113.80' },
  { name: '*.example.com.', answer: 'NODATA' },
];

function streamPlan(lab: LabCluster): LoadPlan {
  const { name } = lab.pod('client');
  return {
    namespace: lab.network.path(name),
    server: lab.serviceAddress('kube-system/kube-dns'),
    perSecond: RATE,
    seconds: SECONDS,
    waitMs: 1500,
    sockets: 16,
    name: (index) => `n${index % NAMES}.example.com.`,
  };
}

/** The number of packets that the DNS server sends upstream for a number of different names. */
async function packetsFor(stage: Stage, lab: LabCluster, count: number): Promise<number> {
  const { name } = lab.pod('client');
  const { packets } = await stage.capture(lab.pod(DNS).name, { to: INTERNET }, () =>
    load({
      namespace: lab.network.path(name),
      server: lab.serviceAddress('kube-system/kube-dns'),
      perSecond: 50,
      seconds: count / 50,
      waitMs: 2000,
      sockets: 1,
      name: (index) => `t${index}.example.com.`,
    }),
  );
  return packets.length / count;
}

export const packetLimit: Story = {
  name: 'packet-limit',
  title: '1 024 packets a second, and no cache',
  source: 'Kubernetes DNS horror stories (Datadog): staging fright on AWS',
  preconditions: [
    `a resolver of the cloud that takes ${LIMIT} packets a second from one machine`,
    'a Corefile without cache for external names',
  ],
  trigger: `${RATE} queries a second for ${NAMES} names, for ${SECONDS} s`,
  needs: [{ program: 'nft' }, { program: 'dig' }],
  seconds: 18,
  async play(stage) {
    const objects = usualObjects() + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, internet, corefile: withoutCache, ipv6: false });
    const { node } = lab.pod(DNS);
    const udp = await packetsFor(stage, lab, 50);
    await lab.stopDns(DNS);
    await lab.startDns(DNS, withTcp);
    const kept = await packetsFor(stage, lab, 50);
    const dig = ['dig', `@${INTERNET}`, '+tcp', '+short', 't.example.com'];
    const each = await stage.capture(lab.pod(DNS).name, { to: INTERNET }, () =>
      lab.execLater(DNS, dig),
    );
    await lab.stopDns(DNS);
    await lab.startDns(DNS, withoutCache);
    limitPackets(lab, node, INTERNET, LIMIT);
    lab.outside.length = 0;
    const began = performance.now();
    const flaw = await load(streamPlan(lab));
    const last = lab.outside.at(-1)?.atMs ?? began;
    const perSecond =
      lab.outside.length / Math.max(1, (last - (lab.outside[0]?.atMs ?? began)) / 1000);
    const lost = lostBy(lab, node, 'limit');
    await lab.stopDns(DNS);
    await lab.startDns(DNS, usualCorefile);
    // Every name is queried once before the measurement, to fill the cache.
    await load({ ...streamPlan(lab), perSecond: NAMES, seconds: 1 });
    lab.outside.length = 0;
    const fixed = await load(streamPlan(lab));
    const act = (kind: Act['kind'], title: string, facts: Act['facts']): Act => ({
      kind,
      title,
      command: `${RATE} queries a second for ${SECONDS} s`,
      packets: [],
      facts,
    });
    return [
      act('flaw', 'every query is forwarded', [
        within('queries at the upstream per second', [0, LIMIT * 1.15], perSecond),
        within('packets lost beyond the limit', [1, Infinity], lost),
        within('unanswered queries', [1, Infinity], flaw.sent - flaw.answered),
      ]),
      act('flaw', 'a TCP connection for each query, as in CoreDNS’s proxy of 2018', [
        within('packets to the upstream for a query over UDP', [0.95, 1.3], udp),
        within(
          'packets to the upstream for a query over a separate connection',
          [5, 9],
          each.packets.length,
        ),
      ]),
      act('cure', 'force_tcp over connections that stay open', [
        within('packets to the upstream for a query', [0.5, 3], kept),
      ]),
      act('cure', 'cache', [
        within('share of answered queries', [0.98, 1], fixed.answered / fixed.sent),
        within('queries at the upstream', [0, NAMES * 6], lab.outside.length),
      ]),
    ];
  },
  model: null,
};
