/** Events in a DNS pod's life during a stream of queries. None of them may lose more queries than is unavoidable. */
import { after, before, describe, test } from 'node:test';
import { DNS_DEPLOYMENT, DNS_PODS, QUICK_PROBE, restart, setImage } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { assertLostWithin, assertNoneLost, pause, streamWhile } from './stream.ts';

/** Seconds without one of the two pods. kube-proxy and the endpoints react later than the kubelet. */
const MOST_LOST_SECONDS = 3;

describe('DNS pods starting and stopping under load', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await node.kubectl('-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p', QUICK_PROBE);
    await setImage(node, NDOTS_IMAGES[0]);
    await pause(10_000);
  });
  after(() => node?.[Symbol.asyncDispose]());

  test('a rollout restart loses nothing', async (t) => {
    assertNoneLost(t, await streamWhile(node, 'ndots restarted', () => restart(node)));
  });

  test('1 → 3 → 1 replicas lose nothing', async (t) => {
    for (const replicas of [1, 3, 1]) {
      const report = await streamWhile(node, `scaled to ${replicas}`, () => scale(replicas), {
        // Terminating pods answer until lameduck ends.
        afterMs: 10_000,
      });
      assertNoneLost(t, report);
    }
    await scale(2);
  });

  async function scale(replicas: number): Promise<void> {
    await node.kubectl('-n', 'kube-system', 'scale', DNS_DEPLOYMENT, `--replicas=${replicas}`);
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
  }

  test('one of two processes killed: its own queries are lost, but only while it is down', async (t) => {
    const report = await streamWhile(node, 'a process killed', async () => {
      const pid = await node.pidOf('kube-system', DNS_PODS);
      await node.space.must(['kill', '-9', String(pid)]);
      await pause(8000);
    });
    assertLostWithin(t, report, MOST_LOST_SECONDS);
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
  });

  test('one of two pods force-deleted: queries are lost only briefly', async (t) => {
    const report = await streamWhile(node, 'a pod deleted by force', async () => {
      const [pod] = await node.pods('kube-system', DNS_PODS);
      await node.kubectl(
        ...['-n', 'kube-system', 'delete', 'pod', pod!.metadata.name],
        ...['--force', '--grace-period=0'],
      );
      await node.rolledOut('kube-system', DNS_DEPLOYMENT);
    });
    assertLostWithin(t, report, MOST_LOST_SECONDS);
  });
});
