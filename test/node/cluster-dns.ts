/** Reads the state of the DNS pods in a node's cluster, and the replies that their clients get. */
import type { NodeCluster, PodState } from './node-cluster.ts';
import { until } from './progress.ts';

export const DNS_PODS = 'k8s-app=kube-dns';
export const DNS_DEPLOYMENT = 'deployment/coredns';

/** The readiness probe that fails within lameduck, as recommended in deploy/README.md. */
export const QUICK_PROBE: string = JSON.stringify({
  spec: {
    template: {
      spec: {
        containers: [
          { name: 'coredns', readinessProbe: { periodSeconds: 2, failureThreshold: 1 } },
        ],
      },
    },
  },
});

export async function setImage(node: NodeCluster, image: string): Promise<void> {
  await node.kubectl('-n', 'kube-system', 'set', 'image', DNS_DEPLOYMENT, `coredns=${image}`);
  await node.rolledOut('kube-system', DNS_DEPLOYMENT);
}

export async function restart(node: NodeCluster, what: string = DNS_DEPLOYMENT): Promise<void> {
  await node.kubectl('-n', 'kube-system', 'rollout', 'restart', what);
  await node.rolledOut('kube-system', what);
}

/**
 * Waits until the DNS pods from earlier rollouts are gone. They still exist, and still answer, when the rollout is
 * over.
 */
export const oldPodsGone = (node: NodeCluster): Promise<void> =>
  until('the old DNS pods to be gone', async () => {
    const deleted = 'jsonpath={.items[*].metadata.deletionTimestamp}';
    const words = ['get', 'pods', '-l', DNS_PODS, '-o', deleted];
    const found = await node.kubectl('-n', 'kube-system', ...words);
    return found === '' ? null : found;
  });

/** Maps each metric's name to its type, as reported by the first DNS pod. */
export async function metricTypes(node: NodeCluster): Promise<ReadonlyMap<string, string>> {
  const text = await page(node, 9153, '/metrics');
  return new Map(
    [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  );
}

/**
 * A page from the first DNS pod, fetched the way the kubelet would.
 * @throws if it is missing or its status is an error
 */
export async function page(node: NodeCluster, port: number, path: string): Promise<string> {
  const [pod] = await node.pods('kube-system', DNS_PODS);
  return node.space.must([
    'curl',
    '-sS',
    '-f',
    '-m',
    '5',
    `http://${pod!.status.podIP}:${port}${path}`,
  ]);
}

/** The lab's clients, which use three C and Go resolvers. */
const clients = ['glibc', 'musl', 'go'] as const;

/** Names as programs write them. */
const written = [
  'web',
  'web.shop',
  'kubernetes.default',
  'db-0.db.shop.svc.cluster.local',
  'pay',
  'www.example.com',
  'nosuch',
] as const;

/** Maps `CLIENT NAME` to the addresses found in the client pod, or to the error. */
export async function lookups(node: NodeCluster): Promise<ReadonlyMap<string, string>> {
  const client = await node.pidOf('shop', 'app=client');
  const found = new Map<string, string>();
  for (const kind of clients)
    for (const name of written) {
      const { out, err } = await node.inPod(client, [
        `/usr/local/bin/lookup-${kind}`,
        name,
        '0',
        '1',
      ]);
      const line = out.split('\n').find((each) => each.startsWith('{'));
      if (line === undefined) throw new Error(`lookup-${kind} ${name}: ${out}${err}`);
      const { addrs, err: error } = JSON.parse(line) as { addrs: readonly string[]; err: string };
      // Go's errors include the server's address and the transport.
      const failure = error === '' ? '' : 'not found';
      found.set(`${kind} ${name}`, addrs.toSorted().join(' ') || failure);
    }
  return found;
}

/** The memory charged to a pod's control group, in MiB. */
export interface PodMemory {
  readonly usage: number;
  /** The figure that `kubectl top` shows and that evictions are based on. */
  readonly workingSet: number;
}

/**
 * Supports cgroup v1 and v2.
 * @throws if the group does not exist
 */
export async function memoryOf(node: NodeCluster, pod: PodState): Promise<PodMemory> {
  const { uid } = pod.metadata;
  const find = `find /sys/fs/cgroup -type d -name "*pod$1" 2>/dev/null | grep -E "memory|^/sys/fs/cgroup/kubepods" | head -n 1`;
  const group = (await node.space.must(['sh', '-c', find, 'sh', uid])).trim();
  const files = `cd "$1" && cat memory.usage_in_bytes 2>/dev/null || cat memory.current; grep -E "^(total_)?inactive_file" memory.stat | tail -n 1 | cut -d" " -f2`;
  const [usage = NaN, inactive = NaN] = (
    await node.space.must(['sh', '-c', `cd "$1"; ${files}`, 'sh', group])
  )
    .trim()
    .split('\n')
    .map(Number);
  return { usage: usage / 2 ** 20, workingSet: (usage - inactive) / 2 ** 20 };
}

export const dnsLog = (node: NodeCluster): Promise<string> =>
  node.kubectl('-n', 'kube-system', 'logs', '-l', DNS_PODS, '--tail=-1', '--prefix');

export function secondsToReady({ status }: PodState): number {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  return (Date.parse(ready?.lastTransitionTime ?? '') - Date.parse(status.startTime ?? '')) / 1000;
}
