/** A node's connection tracking table. Reads its size and losses, and deletes entries. */
import { conntrackStatistic } from '../../server/runtime/conntrack-statistics.ts';
import type { LabCluster } from './cluster.ts';
import { call } from './commands.ts';

/** Returns the number of UDP and TCP connections that a node tracks. */
export function countConnections(lab: LabCluster, node: string): number {
  const { stdout } = inNode(lab, node, ['conntrack', '-L']);
  return stdout.split('\n').filter((line) => /^(?:udp|tcp) /.test(line)).length;
}

/**
 * Returns the number of packets dropped by the kernel because two tried to create the same connection at once, which is
 * the `insert_failed` column.
 */
export function insertFailed(lab: LabCluster, node: string): number {
  const text = lab.network.run(node, ['cat', '/proc/net/stat/nf_conntrack']);
  return conntrackStatistic(text, 'insert_failed');
}

/**
 * Deletes entries, like kube-proxy does for UDP services when an endpoint goes away.
 * @param to the original destination; null for any
 * @param endpoint the translated destination; null for any
 * @returns the number of deleted entries
 */
export function forgetConnections(
  lab: LabCluster,
  node: string,
  to: string | null,
  endpoint: string | null,
): number {
  const words = [
    ...['conntrack', '-D', '-p', 'udp'],
    ...(to === null ? [] : ['--orig-dst', to]),
    ...(endpoint === null ? [] : ['--reply-src', endpoint]),
  ];
  const { stdout } = inNode(lab, node, words);
  return stdout.split('\n').filter((line) => line.startsWith('udp ')).length;
}

function inNode(lab: LabCluster, node: string, words: readonly string[]): ReturnType<typeof call> {
  return call(['nsenter', `--net=${lab.network.path(node)}`, '--', ...words]);
}
