import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after } from 'node:test';
import { findClient } from '../../src/resolver/clients.ts';
import { compareWithReal } from '../kit/real-comparison.ts';
import { buildFolder, cannotIsolate, hasProgram, sources } from '../kit/real-resolver.ts';

const folder = buildFolder();
after(() => folder.remove());

/** Up to 1.21 follows the model of 1.19, later ones that of 1.24. */
function goVersion(): string {
  const { stdout } = spawnSync('go', ['version'], { encoding: 'utf8' });
  return Number(/go1\.(\d+)/.exec(stdout ?? '')?.[1] ?? 24) <= 21 ? '1.19' : '1.24';
}

const reason = cannotIsolate() ?? (hasProgram('go') ? null : 'needs Go');
const program = join(folder.path, 'lookup');
if (reason === null) {
  // GODEBUG and the go line of the module decide about EDNS: both as a current program has them.
  execFileSync('go', ['build', '-o', program, '.'], {
    cwd: sources.go,
    env: { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false' },
  });
}

compareWithReal(
  'Go',
  findClient(`go@${goVersion()}`),
  reason === null ? [program] : null,
  reason ?? '',
);
