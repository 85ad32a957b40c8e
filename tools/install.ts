/** Installs the real programs that the tests use, as far as this machine allows it. What stays missing is skipped visibly. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { packages } from './packages.ts';

function found(program: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => existsSync(join(folder, program)));
}

/** Packages whose program is not on this machine. */
export function missingPackages(): readonly string[] {
  return Object.entries(packages)
    .filter(([, program]) => !found(program))
    .map(([name]) => name);
}

/** Tries to install what is missing (root on Debian only); says what it does. */
export function installMissing(): void {
  const missing = missingPackages();
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0 || !found('apt-get')) {
    console.log(`Not installed, tests that need them are skipped: ${missing.join(' ')}`);
    console.log(`  install them with: sudo apt-get install ${missing.join(' ')}`);
    return;
  }
  console.log(`Installing for the tests: ${missing.join(' ')}`);
  // Services that packages bring must not start here: the tests start what they need, on ports of their own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const apt = (...words: string[]): boolean =>
    spawnSync('apt-get', ['-q', '-y', ...words], { env, stdio: 'ignore' }).status === 0;
  apt('update');
  if (apt('install', '--no-install-recommends', ...missing)) return;
  // One package that cannot be had must not keep the others away.
  for (const name of missing) {
    if (!apt('install', '--no-install-recommends', name))
      console.log(`  not available here: ${name}`);
  }
}
