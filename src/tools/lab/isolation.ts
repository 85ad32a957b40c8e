/**
 * Isolates a lab from the machine. The lab runs in separate network, mount and process namespaces that belong to one
 * process. When that process ends for any reason, the kernel kills all the others. Nothing remains of the lab, not even
 * a file.
 */
import type { StdioOptions } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { startProgram, type StartedProgram } from '../../server/runtime/programs.ts';
import { LAB_DIRECTORY } from './files.ts';
import { must } from './commands.ts';

/**
 * Starts a program as the first process in new namespaces, with a separate session so that Ctrl-C only reaches this
 * process. When this process ends, the kernel kills the program and everything in its namespaces.
 * @param env the program's environment
 * @param outlives true if the program should continue after this process has ended
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
 * Prepares the namespaces before anything else. Later mounts are invisible outside, and the lab has a separate /run.
 */
export function furnish(): void {
  must(['mount', '--make-rprivate', '/']);
  must(['mount', '-t', 'tmpfs', 'tmpfs', '/run']);
  mkdirSync(LAB_DIRECTORY, { recursive: true });
}
