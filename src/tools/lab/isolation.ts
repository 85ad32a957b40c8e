/**
 * Isolates a lab from the machine. The lab runs in its own network, mount and process namespaces, which belong to one
 * process. When that process ends for any reason, the kernel kills all the others. Nothing of the lab remains, not even
 * a file.
 */
import type { StdioOptions } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { startProgram, type StartedProgram } from '../../server/runtime/programs.ts';
import { LAB_FOLDER } from './files.ts';
import { must } from './commands.ts';

/**
 * Starts a program as the first process of new namespaces, in its own session, so that Ctrl-C reaches only this
 * process. When this process ends, the kernel kills the program and everything in its namespaces.
 * @param env the program's environment
 * @param outlives true if the program continues when this process ends
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

/** Prepares the namespaces first of all. Later mounts are not visible outside, and the lab has its own /run. */
export function furnish(): void {
  must(['mount', '--make-rprivate', '/']);
  must(['mount', '-t', 'tmpfs', 'tmpfs', '/run']);
  mkdirSync(LAB_FOLDER, { recursive: true });
}
