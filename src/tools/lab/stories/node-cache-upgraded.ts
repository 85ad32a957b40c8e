/** The cache of a node is replaced by another instance while its pods send queries. */
import type { LabCluster } from '../cluster.ts';
import { longestOutageMs, type LoadResult } from '../load.ts';
import {
  asNodeLocal,
  NODE,
  nodeCachePlan,
  startWithNodeCache,
  stream,
  untilNodeAnswers,
  whoAnswers,
} from '../node-cache-world.ts';
import { equal, within, type Act, type Stage, type Story } from '../story.ts';
import { pause } from '../pause.ts';

const RATE = 1000;

interface SeenUpgrade extends LoadResult {
  /** The server that answers in the end. */
  readonly after: string;
  /** The number of queries that the cluster's DNS server received during the change. */
  readonly forwarded: number;
}

/** Sends queries before, during and after a change of the node cache. */
async function amid(
  stage: Stage,
  lab: LabCluster,
  change: () => Promise<void>,
  waitMs: number,
): Promise<SeenUpgrade> {
  await untilNodeAnswers(lab);
  const { result, packets } = await stage.capture(lab.pod('kube-system/dns-1').name, {}, () => {
    const changed = (async () => {
      await pause(500);
      await change();
      await pause(500);
    })();
    return Promise.all([stream(lab, RATE, changed, waitMs), changed]);
  });
  const forwarded = packets.filter(
    ({ isQuery, name }) => isQuery && name.startsWith('kubernetes.'),
  );
  return { ...result[0], after: await whoAnswers(lab), forwarded: forwarded.length };
}

export const nodeCacheUpgraded: Story = {
  name: 'node-cache-upgraded',
  title: 'the cache of a node is upgraded',
  source:
    'kubernetes/dns issue 310; kops issue 14812; Kubernetes DNS horror stories (Datadog): rolling updates',
  preconditions: [
    'a node whose cache has the address of the DNS service',
    `a pod of that node that asks ${RATE} times a second, without a pause`,
  ],
  trigger: 'the cache is replaced by a new instance, as with a new image of the DaemonSet',
  needs: [{ program: 'iptables' }],
  seconds: 20,
  async play(stage) {
    const lab = await startWithNodeCache(stage);
    const old = nodeCachePlan(lab, [...asNodeLocal, '-takeover', 'none']);
    await lab.caches.start(NODE, old);
    const flaw = await amid(
      stage,
      lab,
      async () => {
        await lab.caches.stop(NODE, 'SIGTERM');
        await lab.caches.start(NODE, old);
      },
      400,
    );
    await lab.caches.stop(NODE, 'SIGTERM');
    const plan = nodeCachePlan(lab, []);
    await lab.caches.start(NODE, plan);
    const cure = await amid(stage, lab, () => lab.caches.upgrade(NODE, plan), 3000);
    const act = (
      kind: Act['kind'],
      title: string,
      command: string,
      { sent, answered, after, all, forwarded }: SeenUpgrade,
    ): Act => ({
      kind,
      title,
      command,
      packets: [],
      facts: [
        within(
          `of ${sent} queries are lost`,
          kind === 'cure' ? [0, 0] : [1, Infinity],
          sent - answered,
        ),
        ...(kind === 'cure'
          ? [
              // The new instance took over the entries of the old one.
              within('queries at the cluster’s DNS server', [0, 1], forwarded),
            ]
          : [within('seconds without an answer', [0.1, Infinity], longestOutageMs(all) / 1000)]),
        equal('answering server afterwards', 'node', after),
      ],
    });
    return [
      act(
        'flaw',
        'the old instance ends, and then the new one starts',
        'kill -TERM, with -failopen=false -skipteardown',
        flaw,
      ),
      act(
        'cure',
        'the new instance takes over from the old one, with its cache',
        'ndots node-cache -takeover FOLDER',
        cure,
      ),
    ];
  },
  model: null,
};
