/**
 * The image of the cluster's DNS is changed and changed back under load: replacing all pods at once loses
 * queries, one by one loses none.
 */
import { printSpan } from '../../../server/base/elapsed.ts';
import { clientPod, usualCorefile, usualObjects } from '../defaults.ts';
import type { LabCluster } from '../cluster.ts';
import { withEndpoints } from '../endpoints.ts';
import { load, type LoadResult } from '../load.ts';
import { deleteDnsPod, rollDns } from '../roll.ts';
import { within, type Act, type Story } from '../story.ts';
import { pause } from '../pause.ts';

const SERVICE = 'kube-system/kube-dns';
const RATE = 100;
const BOTH = ['10.244.1.53', '10.244.2.53'];
const TIMES = { propagationMs: 500, readyMs: 300, graceMs: 30_000 };
/** Seconds of one part of the stream; the next part begins when it has been sent. */
const PART_SECONDS = 2;
const corefile = usualCorefile.replace('lameduck 5s', 'lameduck 2s');

/**
 * Sends queries, each from a new port, until a change is complete. A client waits five seconds for a reply,
 * like glibc.
 */
async function during(lab: LabCluster, change: () => Promise<void>): Promise<LoadResult[]> {
  const parts: Promise<LoadResult>[] = [];
  let goesOn = true;
  const changed = pause(1000)
    .then(change)
    .finally(() => (goesOn = false));
  while (goesOn) {
    parts.push(
      load({
        namespace: lab.network.path(lab.pod('client').name),
        server: lab.serviceAddress(SERVICE),
        perSecond: RATE,
        seconds: PART_SECONDS,
        waitMs: 5000,
        sockets: RATE * PART_SECONDS,
        name: () => 'kubernetes.default.svc.cluster.local.',
      }),
    );
    await pause(PART_SECONDS * 1000);
  }
  await changed;
  return Promise.all(parts);
}

export const swap: Story = {
  name: 'swap',
  title: 'the cluster’s DNS is swapped for ndots under load, and back',
  source: 'the move of a cluster from CoreDNS to ndots',
  preconditions: [
    'two DNS pods, and half of all queries for each',
    `${printSpan(TIMES.propagationMs)} until the rules of all nodes are new`,
  ],
  trigger: `the image is changed while ${RATE} queries a second come`,
  needs: [],
  seconds: 60,
  async play(stage) {
    const objects = usualObjects(2) + clientPod('default', 'client', '10.244.1.4');
    const lab = await stage.start({ objects, corefile, ipv6: false });
    const all = lab.objects.slices;
    const pods = lab.dnsPods.map(({ namespace, pod }) => `${namespace}/${pod}`);
    const flaw = await during(lab, async () => {
      await Promise.all(pods.map((pod) => deleteDnsPod(lab, pod, TIMES)));
      await Promise.all(pods.map((pod) => lab.startDns(pod, corefile)));
      await pause(TIMES.readyMs + TIMES.propagationMs);
      lab.change({ slices: withEndpoints(lab.objects.slices, SERVICE, BOTH, all) });
    });
    lab.serveBy('ndots');
    const there = await during(lab, () => rollDns(lab, corefile, TIMES));
    lab.serveBy('given');
    const back = await during(lab, () => rollDns(lab, corefile, TIMES));
    const given = stage.server;
    return [
      act('flaw', 'all pods at once', 'kubectl delete pods -l k8s-app=kube-dns', [
        within('lost queries', [1, sent(flaw)], lost(flaw)),
      ]),
      act('cure', `pod by pod, from ${given} to ndots`, 'kubectl set image', [
        within(`queries of ${sent(there)} that are lost`, [0, 0], lost(there)),
      ]),
      act('cure', `pod by pod, from ndots back to ${given}`, 'kubectl rollout undo', [
        within(`queries of ${sent(back)} that are lost`, [0, 0], lost(back)),
      ]),
    ];
  },
  model: null,
};

function act(kind: Act['kind'], title: string, command: string, facts: Act['facts']): Act {
  return { kind, title, command: `${command} …`, packets: [], facts };
}

const sent = (parts: readonly LoadResult[]): number =>
  parts.reduce((sum, part) => sum + part.sent, 0);

const lost = (parts: readonly LoadResult[]): number =>
  parts.reduce((sum, part) => sum + part.sent - part.answered, 0);
