import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { findClient } from '../../src/resolver/clients.ts';
import { compareWithReal } from '../kit/real-comparison.ts';
import { buildFolder, cannotIsolate, hasProgram, sources } from '../kit/real-resolver.ts';

const folder = buildFolder();
after(() => folder.remove());

/** The loader prints its version when it is run: up to 1.2.3 without TCP, later ones with. */
function muslVersion(): string {
  const [loader] = /ld-musl-\S+\.so\.1/.exec(readFileSync('/proc/self/maps', 'utf8')) ?? [];
  const path = loader === undefined ? '/lib/ld-musl-x86_64.so.1' : `/lib/${loader}`;
  const { stderr } = spawnSync(path, [], { encoding: 'utf8' });
  const [, minor = 2, patch = 3] = /Version 1\.(\d+)\.(\d+)/.exec(stderr ?? '') ?? [];
  return Number(minor) > 2 || Number(patch) > 3 ? '1.2.5' : '1.2.3';
}

const reason = cannotIsolate() ?? (hasProgram('musl-gcc') ? null : 'needs musl-gcc (musl-tools)');
const program = join(folder.path, 'lookup');
if (reason === null) execFileSync('musl-gcc', ['-O1', '-static', '-o', program, sources.c]);

compareWithReal(
  'musl',
  findClient(`musl@${muslVersion()}`),
  reason === null ? [program] : null,
  reason ?? '',
);
