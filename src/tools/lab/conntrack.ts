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
 * @returns the command, its exit code (1: there was nothing to remove), and how many entries were
 * removed
 */
export function forgetConnections(
  lab: LabCluster,
  node: string,
  to: string | null,
  endpoint: string | null,
): { readonly command: string; readonly code: number; readonly count: number } {
  const words = [
    ...['conntrack', '-D', '-p', 'udp'],
    ...(to === null ? [] : ['--orig-dst', to]),
    ...(endpoint === null ? [] : ['--reply-src', endpoint]),
  ];
  const { code, stdout } = inNode(lab, node, words);
  const count = stdout.split('\n').filter((line) => line.startsWith('udp ')).length;
  return { command: words.join(' '), code: code ?? -1, count };
}

function inNode(lab: LabCluster, node: string, words: readonly string[]): ReturnType<typeof call> {
  return call(['nsenter', `--net=${lab.network.path(node)}`, '--', ...words]);
}
