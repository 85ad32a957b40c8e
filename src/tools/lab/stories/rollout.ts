/** A DNS pod ends before the nodes have new rules: queries are lost in proportion to the delay and the rate. */
import { printSpan } from '../../../server/base/elapsed.ts';
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { withEndpoints } from '../endpoints.ts';
import { load, type LoadResult } from '../load.ts';
import { within, type Act, type Story } from '../story.ts';
import { pause } from '../pause.ts';

const SERVICE = 'kube-system/kube-dns';
const RATE = 100;
/** Milliseconds from the end of the pod until all nodes have new rules: the probes, and the API's latency. */
const DELAY_MS = 1500;
const BOTH = ['10.244.1.53', '10.244.2.53'];
const LEFT = ['10.244.2.53'];
const withLameduck = usualCorefile.replace('lameduck 5s', 'lameduck 4s');
const withoutLameduck = usualCorefile.replace('lameduck 5s', 'lameduck 0s');

/** Sends queries, each from a new port, while the first pod terminates. */
async function rollOut(lab: LabCluster): Promise<LoadResult> {
  const { name } = lab.pod('client');
  const stream = load({
    namespace: lab.network.path(name),
    server: lab.serviceAddress(SERVICE),
    perSecond: RATE,
    seconds: 4,
    waitMs: 1000,
    sockets: RATE * 4,
    name: () => 'kubernetes.default.svc.cluster.local.',
  });
  await pause(1000);
  lab.signalDns('kube-system/dns-1', 'SIGTERM');
  await pause(DELAY_MS);
  lab.change({ slices: withEndpoints(lab.objects.slices, SERVICE, LEFT) });
  const result = await stream;
  await lab.stopDns('kube-system/dns-1');
  return result;
}

export const rollout: Story = {
  name: 'rollout',
  title: 'a DNS pod ends before the nodes know',
  source: 'Kubernetes DNS horror stories (Datadog); kubernetes issue 129617',
  preconditions: [
    'two DNS pods, and half of all queries for each',
    `${printSpan(DELAY_MS)} from the end of a pod until the rules of all nodes are new`,
  ],
  trigger: `one of the pods gets SIGTERM while ${RATE} queries a second come`,
  needs: [],
  seconds: 20,
  async play(stage) {
    const objects = usualObjects(2) + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, corefile: withoutLameduck, ipv6: false });
    const all = lab.objects.slices;
    const flaw = await rollOut(lab);
    lab.change({ slices: withEndpoints(lab.objects.slices, SERVICE, BOTH, all) });
    await lab.startDns('kube-system/dns-1', withLameduck);
    const cure = await rollOut(lab);
    const predicted = (RATE * DELAY_MS) / 1000 / 2;
    const act = (kind: Act['kind'], title: string, facts: Act['facts']): Act => ({
      kind,
      title,
      command: 'kubectl delete pod dns-1',
      packets: [],
      facts,
    });
    return [
      act('flaw', 'no lameduck: the server ends at once', [
        within(
          `queries that are lost (predicted: ${RATE}/s × ${printSpan(DELAY_MS)} ÷ 2 = ${predicted})`,
          [predicted * 0.4, predicted * 1.8],
          flaw.sent - flaw.answered,
        ),
      ]),
      act('cure', 'lameduck 4s: it keeps answering until the nodes know', [
        within('lost queries', [0, 0], cure.sent - cure.answered),
      ]),
    ];
  },
  model: null,
};
