/**
 * Two cluster nodes in network namespaces, each with a bridge for its pods. The interface with the default route
 * connects them. The first node has a client pod, and the second has a client pod and a name server pod.
 */
import { spawnSync } from 'node:child_process';

/** Concurrent worlds use different names. */
const OWN = `ndots-tn-${process.pid}`;

/** The address of the name server's pod. */
export const SERVER = '10.91.2.10';
/** Network namespaces. */
export const SPACE: {
  readonly first: string;
  readonly second: string;
  /** A pod on the first node. */
  readonly far: string;
  /** Pods on the second node. */
  readonly near: string;
  readonly server: string;
} = {
  first: `${OWN}-1`,
  second: `${OWN}-2`,
  far: `${OWN}-far`,
  near: `${OWN}-near`,
  server: `${OWN}-dns`,
};

/** The reason why such a world cannot be created here, or null if it can. */
export function noTwoNodes(): string | null {
  if (process.getuid?.() !== 0) return 'needs root';
  for (const program of ['ip', 'dig'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) return `needs ${program}`;
  return spawnSync('unshare', ['-n', 'true']).status === 0 ? null : 'needs network namespaces';
}

/** Creates the namespaces. @returns a function that removes them */
export function makeTwoNodes(): () => void {
  const { first, second, far, near, server } = SPACE;
  const pods = (node: string, of: number, list: readonly (readonly [string, number])[]): string =>
    [
      `ip -n ${node} link add cni0 type bridge`,
      `ip -n ${node} addr add 10.91.${of}.1/24 dev cni0`,
      `ip -n ${node} link set cni0 up`,
      ...list.flatMap(([space, host]) => [
        `ip -n ${node} link add v${host} type veth peer name eth0 netns ${space}`,
        `ip -n ${node} link set v${host} master cni0 up`,
        `ip -n ${space} addr add 10.91.${of}.${host}/24 dev eth0`,
        `ip -n ${space} link set eth0 up`,
        `ip -n ${space} route add default via 10.91.${of}.1`,
      ]),
    ].join('\n');
  const node = (space: string, other: number, own: number): string =>
    [
      `ip -n ${space} addr add 10.91.0.${own}/24 dev eth0`,
      `ip -n ${space} link set eth0 up`,
      `ip -n ${space} route add default via 10.91.0.${other}`,
      `ip netns exec ${space} sysctl -qw net.ipv4.ip_forward=1`,
    ].join('\n');
  const script = `set -e
    for n in ${Object.values(SPACE).join(' ')}; do ip netns add $n; ip -n $n link set lo up; done
    ip -n ${first} link add eth0 type veth peer name eth0 netns ${second}
    ${node(first, 2, 1)}
    ${node(second, 1, 2)}
    ${pods(first, 1, [[far, 10]])}
    ${pods(second, 2, [
      [server, 10],
      [near, 20],
    ])}`;
  const made = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  const remove = (): void => {
    for (const space of Object.values(SPACE)) spawnSync('ip', ['netns', 'del', space]);
  };
  if (made.status === 0) return remove;
  remove();
  throw new Error(made.stderr);
}

/** Returns the command that runs a program in a namespace. */
export const inSpace = (space: string, words: readonly string[]): readonly string[] => [
  ...['ip', 'netns', 'exec', space],
  ...words,
];
