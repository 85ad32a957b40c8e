/** The kernel's table of connections on a node: what it holds, what it has lost, and entries that are taken out. */
import { conntrackStatistic } from '../linux/conntrack-statistics.ts';
import type { LabCluster } from './cluster.ts';
import { call } from './commands.ts';

/** Connections over UDP and TCP that a node keeps. */
export function countConnections(lab: LabCluster, node: string): number {
  const { stdout } = inNode(lab, node, ['conntrack', '-L']);
  return stdout.split('\n').filter((line) => /^(?:udp|tcp) /.test(line)).length;
}

/** Packets that the kernel itself has lost because two wanted to be the first of one connection: the column `insert_failed`. */
export function insertFailed(lab: LabCluster, node: string): number {
  const text = lab.network.run(node, ['cat', '/proc/net/stat/nf_conntrack']);
  return conntrackStatistic(text, 'insert_failed');
}

/**
 * Takes entries out, as kube-proxy does for services over UDP when an endpoint goes.
 * @param to where packets were sent; null: anywhere
 * @param endpoint where the kernel leads them; null: anywhere
 * @returns the command, its exit code (1: nothing was to be taken out), and how many entries went
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
