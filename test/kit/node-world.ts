/**
 * A node with a pod, and a cluster next to it. They are in separate network namespaces, with the rules that kube-proxy
 * would write.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printed, start, type Child } from './child.ts';

const program = join(import.meta.dirname, '../../bin/ndots');
const stream = join(import.meta.dirname, 'query-stream.ts');

/** The cache's link-local address, the cluster DNS service, and the service that the cache uses as its upstream. */
export const LOCAL = '169.254.20.10';
/** The cluster DNS service's address. */
export const SERVICE = '10.96.0.10';
const UPSTREAM = '10.96.0.11';
const CLUSTER = '10.0.0.2';

/** The server that answers `who.test.`, as the last byte of its address. */
export const WHO = { node: 99, cluster: 1 } as const;

/** The reason why such a world cannot be created here, or null if it can. */
export function noNodeWorld(): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  for (const program of ['unshare', 'nsenter', 'ip', 'iptables', 'conntrack', 'dig'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `needs ${program}`;
  const made = spawnSync('unshare', ['-n', 'iptables', '-t', 'raw', '-S']);
  return made.status === 0 ? null : 'needs network namespaces with iptables';
}

/**
 * A query in a stream: when it was sent and answered, in milliseconds since the epoch, and by which server. 0 means
 * that it was never answered.
 */
export type Asked = readonly [sentAt: number, answeredAt: number, who: number];

/** A node, one of its pods, and a cluster DNS server. */
export interface NodeWorld {
  /** The directory with the node's files, `Corefile.base` and `Corefile`. */
  readonly directory: string;
  /** Runs a command on the node or in the pod and returns its standard output and standard error. */
  node(...words: readonly string[]): string;
  pod(...words: readonly string[]): string;
  /** Starts `ndots node-cache` and waits until it answers queries, unless `serves` is false. */
  cache(words?: readonly string[], serves?: boolean): Promise<Child>;
  /** Starts another program in one of the namespaces. */
  start(name: string, where: 'node' | 'pod', words: readonly string[]): Child;
  /** The server that answers the pod at this address, or 0 if none does. */
  who(address: string): number;
  /** Starts querying `who.test.` from the pod. Returns a function that stops it. */
  ask(address: string, periodMs?: number): Promise<() => Promise<readonly Asked[]>>;
  close(): Promise<void>;
}

/** The length of the period after a moment in which no query was answered, in milliseconds. */
export function outage(asked: readonly Asked[], from: number): number {
  const after = asked.filter(([sentAt]) => sentAt >= from);
  // Replies that a paused process sends after it resumes are too late.
  const isAnswered = ([sentAt, answeredAt]: Asked): boolean =>
    answeredAt !== 0 && answeredAt - sentAt < 300;
  const first = after.findIndex((query) => !isAnswered(query));
  if (first < 0) return 0;
  const next = after.slice(first).find(isAnswered);
  return next === undefined ? Infinity : next[0] - after[first]![0];
}

const template = `
cluster.local:53 {
    errors
    cache {
            success 9984 30
            denial 9984 5
    }
    reload
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
    prometheus :9253
    health ${LOCAL}:8080
}
who.test:53 {
    bind __PILLAR__LOCAL__DNS__
    template IN A {
        answer "{{ .Name }} 5 IN A 10.0.0.${WHO.node}"
    }
}
.:53 {
    errors
    cache 30
    bind __PILLAR__LOCAL__DNS__
    forward . ${CLUSTER}
    prometheus :9253
}
`;

const clusterCorefile = `
endpoints.test:53 {
    template IN A {
        answer "{{ .Name }} 5 IN A ${CLUSTER}"
    }
}
who.test:53 cluster.local:53 .:53 {
    template IN A {
        answer "{{ .Name }} 60 IN A 10.0.0.${WHO.cluster}"
    }
}
`;

export async function makeNodeWorld(): Promise<NodeWorld> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-node-'));
  const spaces = await Promise.all(['node', 'pod', 'cluster'].map(() => namespace()));
  const [node, pod, cluster] = spaces.map(({ pid }) => pid!) as [number, number, number];
  const inside = (space: number, words: readonly string[]): string => {
    const run = spawnSync('nsenter', ['-t', String(space), '-n', ...words], { encoding: 'utf8' });
    return `${run.stdout}${run.stderr}`;
  };
  const shell = (space: number, script: string): string =>
    inside(space, ['sh', '-ec', script]).trim();
  const said = [
    shell(
      node,
      `ip link set lo up
      ip link add c0 type veth peer name eth0 netns ${cluster}
      ip link add p0 type veth peer name eth0 netns ${pod}
      ip address add 10.0.0.1/24 dev c0; ip link set c0 up
      ip address add 10.1.0.1/24 dev p0; ip link set p0 up
      ip route add default via ${CLUSTER}
      echo 1 > /proc/sys/net/ipv4/ip_forward
      iptables -t nat -N KUBE-SERVICES
      iptables -t nat -A PREROUTING -j KUBE-SERVICES
      iptables -t nat -A OUTPUT -j KUBE-SERVICES
      for service in ${SERVICE} ${UPSTREAM}; do for proto in udp tcp; do
        iptables -t nat -A KUBE-SERVICES -d $service -p $proto --dport 53 -j DNAT --to ${CLUSTER}:53
      done; done
      iptables -t nat -A POSTROUTING -o c0 ! -s 10.0.0.0/24 -j MASQUERADE`,
    ),
    shell(
      pod,
      `ip link set lo up; ip address add 10.1.0.2/24 dev eth0; ip link set eth0 up
      ip route add default via 10.1.0.1`,
    ),
    shell(
      cluster,
      `ip link set lo up; ip address add ${CLUSTER}/24 dev eth0; ip link set eth0 up
      ip route add default via 10.0.0.1`,
    ),
  ].join('');
  if (said !== '') throw new Error(`the namespaces could not be set up: ${said}`);
  writeFileSync(join(directory, 'Corefile.base'), template);
  writeFileSync(join(directory, 'cluster'), clusterCorefile);
  const enter = (space: number, ...words: readonly string[]): readonly string[] => [
    ...['nsenter', '-t', String(space), '-n'],
    ...words,
  ];
  const running: Child[] = [];
  const env = { ...process.env, KUBE_DNS_UPSTREAM_SERVICE_HOST: UPSTREAM };
  const run = (name: string, words: readonly string[]): Child => {
    const child = start(name, words, { env });
    running.push(child);
    return child;
  };
  const server = run(
    'the cluster',
    enter(cluster, program, 'serve', '-conf', join(directory, 'cluster')),
  );
  await printed(server, /^ndots-/m);
  return {
    directory,
    node: (...words) => inside(node, words),
    pod: (...words) => inside(pod, words),
    async cache(words = [], serves = true) {
      const child = run(
        'the cache',
        enter(
          node,
          ...[program, 'node-cache', '-localip', `${LOCAL},${SERVICE}`],
          ...[
            '-conf',
            join(directory, 'Corefile'),
            '-basecorefile',
            join(directory, 'Corefile.base'),
          ],
          ...['-upstreamsvc', 'kube-dns-upstream', '-takeover', directory],
          ...words,
        ),
      );
      if (serves) await printed(child, /^(?=[^]*\d answers)(?=[^]*^ndots-)/m);
      return child;
    },
    start: (name, where, words) => run(name, enter(where === 'node' ? node : pod, ...words)),
    who(address) {
      const words = ['dig', '+short', '+tries=1', '+time=1', `@${address}`, 'who.test'];
      return Number(inside(pod, words).trim().split('.')[3] ?? 0);
    },
    async ask(address, periodMs = 5) {
      const child = run(
        'the pod',
        enter(pod, process.execPath, stream, address, 'who.test', String(periodMs)),
      );
      await printed(child, /asking/);
      return async () => {
        child.end();
        await child.exitCode;
        return JSON.parse(child.output().replace('asking\n', '')) as readonly Asked[];
      };
    },
    async close() {
      for (const child of running) child.signal('SIGKILL');
      await Promise.all(running.map((child) => child.exitCode));
      for (const space of spaces) space.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** An idle process whose only purpose is to preserve a network namespace. */
async function namespace(): Promise<ReturnType<typeof spawn>> {
  const holder = spawn('unshare', ['-n', 'sh', '-c', 'echo here; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => holder.kill('SIGKILL'));
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  return holder;
}

export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until the condition is met and returns how many milliseconds that took. */
export async function until(holds: () => boolean, limitMs = 20_000): Promise<number> {
  const begin = performance.now();
  while (!holds()) {
    assert.ok(performance.now() - begin < limitMs, 'it never held');
    await wait(30);
  }
  return performance.now() - begin;
}

export function unanswered(asked: readonly Asked[]): readonly Asked[] {
  return asked.filter(([, answeredAt]) => answeredAt === 0);
}
