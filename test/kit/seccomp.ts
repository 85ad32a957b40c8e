/** Runs programs under the seccomp profiles in deploy/seccomp. */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';

const profileOf = (verb: string): string => resolve(`deploy/seccomp/${verb}.json`);

/** Returns the command that runs a program under a subcommand's profile. */
export const under = (verb: string, program: string, ...words: readonly string[]): string[] => [
  process.execPath,
  resolve('test/kit/under-seccomp.ts'),
  profileOf(verb),
  program,
  ...words,
];

/** The reason why filters cannot be loaded here, or null if they can. */
export function noFilters(): string | null {
  if (process.platform !== 'linux') return 'needs Linux';
  const [program = '', ...words] = under('serve', process.execPath, '-e', '0');
  const { status, stderr } = spawnSync(program, words, { encoding: 'utf8', timeout: 20_000 });
  return status === 0 ? null : `needs libseccomp (${stderr.trim().split('\n').at(-1)})`;
}
