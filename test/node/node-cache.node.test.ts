/**
 * The node cache from `kubectl apply -k deploy/node-cache`, which is installed, upgraded, killed and removed under
 * load.
 */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DNS_DEPLOYMENT, QUICK_PROBE, restart, setImage } from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { NDOTS_IMAGES, NODE_CACHE_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import type { ProxyMode } from './node-settings.ts';
import { assertLostWithin, assertNoneLost, pause, streamWhile } from './stream.ts';

const manifests = resolve(import.meta.dirname, '../../deploy/node-cache');
const LABEL = 'k8s-app=node-local-dns';
const DAEMON_SET = 'daemonset/node-local-dns';
/** docs/node-cache.md says 0.9 s if the whole container dies. On a busy machine, it takes longer. */
const MOST_KILLED_SECONDS = 3;
/** The number of TCP queries in flight that a server may reset when it stops (docs/node-cache.md, SIGTERM). */
const resetWhenItStops = { TCP: 2 };

for (const mode of ['iptables', 'nftables'] satisfies ProxyMode[])
  describe(`the node cache, kube-proxy with ${mode}`, { skip: noNode() ?? false }, () => {
    let node: NodeCluster;
    before(async () => {
      node = await NodeCluster.start(mode);
      await node.kubectl('-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p', QUICK_PROBE);
      await node.rolledOut('kube-system', DNS_DEPLOYMENT);
      // Waits until the rollout's tracked connections have expired.
      await pause(10_000);
    });
    after(() => node?.[Symbol.asyncDispose]());

    const rolledOut = (): Promise<void> => node.rolledOut('kube-system', DAEMON_SET);
    /** Everything that it may leave on the node. */
    const traces = (): Promise<string> =>
      node.space.must(['sh', '-ec', 'ip -br address; iptables-save; nft list ruleset']);

    test('changing the image of cluster DNS from CoreDNS to ndots loses nothing', async (t) => {
      const change = (): Promise<void> => setImage(node, NDOTS_IMAGES[0]);
      assertNoneLost(t, await streamWhile(node, `CoreDNS to ndots, ${mode}`, change));
    });

    test('a rollout restart of cluster DNS loses nothing', async (t) => {
      assertNoneLost(t, await streamWhile(node, `ndots restarted, ${mode}`, () => restart(node)));
    });

    test('installing it loses nothing', async (t) => {
      const report = await streamWhile(node, 'node cache installed', async () => {
        await node.kubectl('apply', '-k', manifests);
        await rolledOut();
      });
      assertNoneLost(t, report);
    });

    test('it answers pods at the address of the service and at its own', async (t) => {
      const found = await node.space.must(['ip', '-br', 'address', 'show', 'nodelocaldns']);
      assert.match(found, /10\.96\.0\.10/);
      for (const server of ['10.96.0.10', '169.254.20.10']) {
        const report = await streamWhile(node, `asked at ${server}`, () => pause(3000), { server });
        assert.equal(report.refused, 0);
        assertNoneLost(t, report);
      }
    });

    test('another image loses no UDP query', async (t) => {
      const report = await streamWhile(node, 'node cache upgraded', async () => {
        const image = `node-cache=${NODE_CACHE_IMAGES[1]}`;
        await node.kubectl('-n', 'kube-system', 'set', 'image', DAEMON_SET, image);
        await rolledOut();
      });
      assertNoneLost(t, report, resetWhenItStops);
    });

    test('when it is killed it is briefly away: the kernel removes its rules', async (t) => {
      const report = await streamWhile(node, 'node cache killed', async () => {
        await node.space.must(['kill', '-9', String(await node.pidOf('kube-system', LABEL))]);
        await pause(8000);
      });
      assertLostWithin(t, report, MOST_KILLED_SECONDS);
      await rolledOut();
    });

    test('removing it loses no UDP query and leaves nothing', async (t) => {
      const report = await streamWhile(node, 'node cache removed', async () => {
        await node.kubectl('delete', '-k', manifests, '--timeout=60s');
        await pause(3000);
      });
      assertNoneLost(t, report, resetWhenItStops);
      assert.doesNotMatch(await traces(), /nodelocaldns|169\.254\.20\.10/i);
    });
  });
