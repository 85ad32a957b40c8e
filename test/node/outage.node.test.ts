/**
 * The API server and etcd stop under load, first for a moment and then for a minute. During that time, a DNS container
 * restarts.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  DNS_DEPLOYMENT,
  DNS_PODS,
  memoryOf,
  oldPodsGone,
  QUICK_PROBE,
  setImage,
} from './cluster-dns.ts';
import { NodeCluster } from './node-cluster.ts';
import { COREDNS_IMAGE, NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';
import { say, until } from './progress.ts';
import { assertNoneLost, pause, streamWhile } from './stream.ts';

/** The milliseconds until the kubelet has restarted a static pod and the API server is ready, on a busy machine. */
const BACK_MS = 240_000;
/** Milliseconds without the API server or etcd. */
const AWAY_MS = 60_000;
/** DNS pods must answer for a new Service within this many seconds after the API server is back. */
const KNOWN_SECONDS = 30;
/** In milliseconds. CoreDNS took 84 s on a busy machine. */
const KNOWN_MAX_MS = 300_000;
/** The API server's Service address. */
const API_SERVICE = 'https://10.96.0.1';
/** Programs, and the names that tests use for them. */
const controlPlane = [
  ['kube-apiserver', 'the API server'],
  ['etcd', 'etcd'],
] as const;
const MANIFESTS = '/etc/kubernetes/manifests';

describe('the API server and etcd go away', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await node.kubectl('-n', 'kube-system', 'patch', DNS_DEPLOYMENT, '-p', QUICK_PROBE);
    await setImage(node, NDOTS_IMAGES[0]);
    // Without the API server, kube-proxy cannot know that they have ended.
    await oldPodsGone(node);
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** Process IDs by program name, on the node. */
  const processes = async (program: string): Promise<readonly string[]> =>
    (await node.space.run(['pgrep', '-x', program])).out.split('\n').filter((line) => line !== '');

  const back = (): Promise<void> =>
    until(
      'the API server to be ready',
      async () => {
        const { code, err } = await node.tryKubectl('get', '--raw', '/readyz');
        return code === 0 ? null : err.trim();
      },
      BACK_MS,
    );

  let made = 0;
  /**
   * Maps a pod's name to the seconds until it answers for a Service that is created now.
   * @param since the time to count from, or null for the Service's creation
   */
  async function knownAfter(since: number | null = null): Promise<ReadonlyMap<string, number>> {
    const name = `fresh-${made++}`;
    const pods = await node.pods('kube-system', DNS_PODS);
    await until('the API server to take a Service', async () => {
      const { code, err } = await node.tryKubectl(
        ...['-n', 'shop', 'create', 'service', 'clusterip', name, '--tcp=80'],
      );
      return code === 0 || /already exists/.test(err) ? null : err;
    });
    const from = since ?? performance.now();
    const known = new Map<string, number>();
    await Promise.all(
      pods.map(async ({ metadata, status }) => {
        await until(
          `${name} to be known at ${status.podIP}`,
          async () => {
            const { out } = await node.space.run([
              ...['dig', '+short', '+tries=1', '+time=1'],
              ...[`@${status.podIP}`, `${name}.shop.svc.cluster.local`],
            ]);
            return /^10\.96\./m.test(out) ? null : out.trim();
          },
          KNOWN_MAX_MS,
        );
        known.set(metadata.name, (performance.now() - from) / 1000);
      }),
    );
    return known;
  }

  /**
   * Seconds until kube-proxy sends connections to the API server again, whose address was removed from its Service when
   * it stopped.
   */
  async function ledAfter(): Promise<number> {
    const from = performance.now();
    await until('kube-proxy to lead to the API server', async () => {
      const words = ['curl', '-sk', '-m', '1', `${API_SERVICE}/livez`];
      const { code, err } = await node.space.run(words);
      return code === 0 ? null : err;
    });
    return (performance.now() - from) / 1000;
  }

  for (const [program, name] of controlPlane)
    test(`${name} is killed: no query is lost, and a new Service is known soon`, async (t) => {
      const report = await streamWhile(node, `${program} killed`, async () => {
        for (const pid of await processes(program)) await node.space.must(['kill', '-9', pid]);
        await pause(2000);
        await back();
      });
      assert.equal(report.refused, 0);
      const seconds = Math.max(...(await knownAfter()).values());
      say(`after ${program} was killed a new Service was known after ${seconds.toFixed(1)} s`);
      assert.ok(seconds < KNOWN_SECONDS, `${seconds} s`);
      assertNoneLost(t, report);
    });

  /**
   * Stops the API server or etcd for a minute and kills a DNS container after 20 seconds.
   * @returns the seconds from the API server's return until both kinds of pods know a new Service, and until kube-proxy
   * has updated its rules
   */
  async function awayForAMinute(
    name: string,
    program: (typeof controlPlane)[number][0] = 'kube-apiserver',
  ): Promise<{ readonly lived: number; readonly restarted: number; readonly led: number }> {
    let [lived, restarted, led] = [NaN, NaN, NaN];
    await streamWhile(node, `${name}: ${program} away for ${AWAY_MS / 1000} s`, async () => {
      const [first] = await node.pods('kube-system', DNS_PODS);
      const pid = await node.pidOf('kube-system', DNS_PODS);
      await node.space.must(['mv', `${MANIFESTS}/${program}.yaml`, '/etc/kubernetes/']);
      await until(`${program} to end`, async () => {
        const left = await processes(program);
        return left.length === 0 ? null : left.join(' ');
      });
      await pause(20_000);
      await node.space.must(['kill', '-9', String(pid)]);
      await pause(AWAY_MS - 20_000);
      await node.space.must(['mv', `/etc/kubernetes/${program}.yaml`, MANIFESTS]);
      await back();
      const from = performance.now();
      const [known, proxied] = await Promise.all([knownAfter(from), ledAfter()]);
      led = proxied;
      for (const [pod, seconds] of known)
        if (pod === first!.metadata.name) restarted = seconds;
        else lived = seconds;
    });
    say(
      `${name}, ${program} away: after the API server was ready, a new Service was known to the pod that lived after ${lived.toFixed(1)} s, to the restarted one after ${restarted.toFixed(1)} s; kube-proxy led to the API server after ${led.toFixed(1)} s`,
    );
    await node.rolledOut('kube-system', DNS_DEPLOYMENT);
    return { lived, restarted, led };
  }

  for (const [program, name] of controlPlane)
    test(`${name} away for a minute while a DNS container is restarted: pods follow the cluster again soon`, async () => {
      const { lived, restarted, led } = await awayForAMinute('ndots', program);
      assert.ok(lived < KNOWN_SECONDS, `${lived} s`);
      // The only API server address that it knows is the Service's address.
      assert.ok(restarted < led + KNOWN_SECONDS, `${restarted} s, and kube-proxy ${led} s`);
    });

  test('CoreDNS in the same outage, and the memory of both', async () => {
    const memory = async (name: string): Promise<void> => {
      for (const pod of await node.pods('kube-system', DNS_PODS)) {
        const { usage, workingSet } = await memoryOf(node, pod);
        say(`${name}: ${usage.toFixed(1)} MiB, working set ${workingSet.toFixed(1)} MiB`);
        assert.ok(workingSet < 120, `${workingSet} MiB of 170`);
      }
    };
    await memory('ndots');
    await setImage(node, COREDNS_IMAGE);
    await oldPodsGone(node);
    await awayForAMinute('CoreDNS');
    await memory('CoreDNS');
  });
});
