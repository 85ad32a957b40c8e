/** Installs the real programs used by the tests, as far as this machine and the user permit. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { packages } from './packages.ts';

/** True if this machine has the program, or a file with this path. */
function found(program: string): boolean {
  if (program.startsWith('/')) return existsSync(program);
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return directories.some((directory) => existsSync(join(directory, program)));
}

/** Packages whose program is missing. */
export function missingPackages(): readonly string[] {
  return Object.entries(packages)
    .filter(([, program]) => !found(program))
    .map(([name]) => name);
}

/**
 * Installs missing packages on Debian as root. In CI (if `CI` is set), it does not ask. On a terminal, it asks for
 * confirmation, and otherwise it installs nothing. Lists the packages that are still missing; tests that need them are
 * skipped.
 */
export async function installMissing(): Promise<void> {
  const missing = missingPackages();
  if (missing.length === 0) return;
  const canInstall = process.getuid?.() === 0 && found('apt-get');
  if (canInstall && (isSet('CI') || (await agrees(missing)))) return install(missing);
  console.log(`Not installed, so tests that need them are skipped: ${missing.join(' ')}`);
  console.log(`  On Debian: sudo apt-get install ${missing.join(' ')}`);
}

function isSet(name: string): boolean {
  return !['', '0', 'false'].includes(process.env[name] ?? '');
}

/** Asks on the terminal. Without a terminal, the answer is no. */
async function agrees(missing: readonly string[]): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await terminal.question(
    `The tests can run these, which are not installed: ${missing.join(' ')}\nInstall them with apt-get? [y/N] `,
  );
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

function install(missing: readonly string[]): void {
  console.log(`Installing for the tests: ${missing.join(' ')}`);
  // Prevents packages from starting services, because the tests start what they need on their own ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const apt = (...words: string[]): boolean =>
    spawnSync('apt-get', ['-q', '-y', ...words], { env, stdio: 'ignore' }).status === 0;
  apt('update');
  if (apt('install', '--no-install-recommends', ...missing)) return;
  // Packages are installed one at a time, so that an unavailable one does not block the others.
  for (const name of missing) {
    if (!apt('install', '--no-install-recommends', name))
      console.log(`  not available here: ${name}`);
  }
}

if (import.meta.main) await installMissing();
