/** The connection tracking table of a node: its size, its losses, and the removal of entries. */
import { conntrackStatistic } from '../../server/runtime/conntrack-statistics.ts';
import type { LabCluster } from './cluster.ts';
import { call } from './commands.ts';

/** The number of UDP and TCP connections that a node tracks. */
export function countConnections(lab: LabCluster, node: string): number {
  const { stdout } = inNode(lab, node, ['conntrack', '-L']);
  return stdout.split('\n').filter((line) => /^(?:udp|tcp) /.test(line)).length;
}

/**
 * Packets that the kernel dropped because two packets tried to create the same connection at once:
 * the column `insert_failed`.
 */
export function insertFailed(lab: LabCluster, node: string): number {
  const text = lab.network.run(node, ['cat', '/proc/net/stat/nf_conntrack']);
  return conntrackStatistic(text, 'insert_failed');
}

/**
 * Removes entries, as kube-proxy does for UDP services when an endpoint goes away.
 * @param to the original destination; null: any
 * @param endpoint the translated destination; null: any
 * @returns how many entries were removed
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
