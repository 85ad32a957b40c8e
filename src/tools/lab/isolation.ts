/**
 * Isolates a lab from the machine. It runs in namespaces of its own (network, mounts, processes)
 * that belong to one process: when that process ends, however it ends, the kernel ends all others
 * in there, and nothing of the lab remains, not even a file.
 */
import type { StdioOptions } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { startProgram, type StartedProgram } from '../../server/runtime/programs.ts';
import { LAB_FOLDER } from './files.ts';
import { must } from './commands.ts';

/**
 * Starts a program as the first process of new namespaces, in a session of its own, so that Ctrl-C
 * reaches only this process. When this process ends the program is killed, with everything in its
 * namespaces.
 * @param env of the program
 * @param outlives whether it continues when this process ends
 */
export function startIsolated(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  stdio: StdioOptions,
  { outlives = false }: { readonly outlives?: boolean } = {},
): StartedProgram {
  const walls = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const isolated = ['unshare', ...walls, '--', ...words];
  const bound = outlives ? isolated : ['setpriv', '--pdeathsig', 'KILL', '--', ...isolated];
  return startProgram(bound, { env, stdio, detached: true });
}

/**
 * Prepares the namespaces, before anything else: mounts made from now on are not visible outside,
 * and /run is the lab's own.
 */
export function furnish(): void {
  must(['mount', '--make-rprivate', '/']);
  must(['mount', '-t', 'tmpfs', 'tmpfs', '/run']);
  mkdirSync(LAB_FOLDER, { recursive: true });
}
