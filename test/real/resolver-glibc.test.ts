import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after } from 'node:test';
import { findClient } from '../../src/resolver/clients.ts';
import { compareWithReal } from '../kit/real-comparison.ts';
import { buildFolder, cannotIsolate, hasProgram, sources } from '../kit/real-resolver.ts';

const folder = buildFolder();
after(() => folder.remove());

/** 2.36 or older follows the model of 2.36, newer ones that of 2.41. */
function glibcVersion(): string | null {
  const { stdout } = spawnSync('getconf', ['GNU_LIBC_VERSION'], { encoding: 'utf8' });
  const minor = /^glibc 2\.(\d+)/.exec(stdout ?? '')?.[1];
  return minor === undefined ? null : Number(minor) <= 36 ? '2.36' : '2.41';
}

const version = glibcVersion();
const reason =
  cannotIsolate() ??
  (version === null ? 'this machine has no glibc' : hasProgram('gcc') ? null : 'needs gcc');
const program = join(folder.path, 'lookup');
if (reason === null) execFileSync('gcc', ['-O1', '-o', program, sources.c]);

compareWithReal(
  `glibc ${version ?? ''}`,
  findClient(`glibc@${version ?? '2.41'}`),
  reason === null ? [program] : null,
  reason ?? '',
);
