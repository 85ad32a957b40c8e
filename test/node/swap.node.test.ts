/**
 * Changes the image of kubeadm's CoreDNS to ndots and back during a stream of queries. The loss is compared with
 * CoreDNS's own loss during a restart in the same cluster.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  DNS_DEPLOYMENT,
  DNS_PODS,
  dnsLog,
  lookups,
  memoryOf,
  metricTypes,
  page,
  QUICK_PROBE,
  restart,
  secondsToReady,
  setImage,
} from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { COREDNS_IMAGE, NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say } from './progress.ts';
import { assertNoneLost, pause, streamWhile } from './stream.ts';
import type { StreamReport } from './stream-client.ts';

const [NDOTS] = NDOTS_IMAGES;
/**
 * The share of queries that a rollout with kubeadm's probe may lose, because kube-proxy keeps entries for the
 * terminating pod.
 */
const KUBEADM_LOSS = 0.03;
/** Go runtime metrics, which ndots does not have. */
const OF_GO = /^(go_|promhttp_)/;

describe('CoreDNS as set up by kubeadm, replaced by ndots', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const coredns: {
    lookups?: ReadonlyMap<string, string>;
    metrics?: ReadonlyMap<string, string>;
    steady?: StreamReport;
    restarted?: StreamReport;
  } = {};

  test('CoreDNS answers all while nothing happens, and loses queries in its own restart', async () => {
    coredns.steady = await streamWhile(node, 'CoreDNS, nothing happens', () => pause(8000));
    assert.deepEqual(coredns.steady.lost, []);
    coredns.lookups = await lookups(node);
    coredns.metrics = await metricTypes(node);
    const memory = await memoryOf(node, (await node.pods('kube-system', DNS_PODS))[0]!);
    say(`CoreDNS: ${memory.usage.toFixed(1)} MiB, working set ${memory.workingSet.toFixed(1)} MiB`);
    coredns.restarted = await streamWhile(node, 'CoreDNS restarted', () => restart(node));
  });

  test('only the image changes, and answers stay the same', async () => {
    const swap = await streamWhile(node, `CoreDNS to ${NDOTS}`, () => setImage(node, NDOTS));
    assert.ok(swap.lost.length <= swap.sent * KUBEADM_LOSS, `${swap.lost.length} of ${swap.sent}`);
    assert.equal(swap.refused, 0);
    // Both servers answered queries in this stream, so a question with two different answers is a difference between
    // them.
    const differing = Object.entries(swap.answers).filter(([, answers]) => answers.length > 1);
    assert.deepEqual(differing, []);
    assert.deepEqual(swap.answers, coredns.steady!.answers);
  });

  test('glibc, musl and Go get the same results from ndots as from CoreDNS', async () => {
    assert.deepEqual(await lookups(node), coredns.lookups);
  });

  test('its pods are soon ready, never restarted, and healthy', async () => {
    for (const pod of await node.pods('kube-system', DNS_PODS)) {
      const [container] = pod.status.containerStatuses!;
      assert.ok(container!.ready);
      assert.equal(container!.restartCount, 0);
      say(`${pod.metadata.name} was ready after ${secondsToReady(pod)} s`);
    }
    assert.equal(await page(node, 8080, '/health'), 'OK');
    assert.equal(await page(node, 8181, '/ready'), 'OK');
  });

  test('every metric that CoreDNS has is there with its type, but those of the Go runtime', async () => {
    const ndots = await metricTypes(node);
    const lacking = [...coredns.metrics!].filter(
      ([name, type]) => !OF_GO.test(name) && ndots.get(name) !== type,
    );
    assert.deepEqual(lacking, []);
  });

  test("kubeadm's ClusterRole is enough", async () => {
    assert.doesNotMatch(await dnsLog(node), /forbidden|\b403\b/i);
  });

  test('it stays within its memory limit', async () => {
    for (const pod of await node.pods('kube-system', DNS_PODS)) {
      const { usage, workingSet } = await memoryOf(node, pod);
      say(`ndots: ${usage.toFixed(1)} MiB, working set ${workingSet.toFixed(1)} MiB`);
      assert.ok(workingSet < 120, `${workingSet} MiB of 170`);
    }
  });

  test('its own restart, and the way back to CoreDNS, lose no more than a restart of CoreDNS may', async () => {
    const restarted = await streamWhile(node, `${NDOTS} restarted`, () => restart(node));
    const back = await streamWhile(node, `${NDOTS} to CoreDNS`, () =>
      setImage(node, COREDNS_IMAGE),
    );
    const lossOf = ({ lost, sent }: StreamReport): string =>
      `${((lost.length / sent) * 100).toFixed(2)}%`;
    say(
      `lost with kubeadm's probe: ${lossOf(coredns.restarted!)} in CoreDNS's restart, ${lossOf(restarted)} in that of ndots, ${lossOf(back)} on the way back`,
    );
    for (const { lost, sent } of [restarted, back])
      assert.ok(lost.length <= sent * KUBEADM_LOSS, `${lost.length} of ${sent}`);
    assert.deepEqual(restarted.answers, coredns.steady!.answers);
    assert.deepEqual(back.answers, coredns.steady!.answers);
  });

  test('with a readiness probe that fails within lameduck, no query is lost in either direction', async (t) => {
    await node.kubectl('-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p', QUICK_PROBE);
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
    // Waits until the previous rollout's tracked connections have expired.
    await pause(10_000);
    for (const image of [NDOTS, COREDNS_IMAGE]) {
      const report = await streamWhile(node, `to ${image}, quick probe`, () =>
        setImage(node, image),
      );
      assert.equal(report.refused, 0);
      assertNoneLost(t, report);
    }
  });
});
