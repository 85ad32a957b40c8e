/** The real resolvers of this machine, ready to be run beside their models. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Client } from '../../src/resolver/client.ts';
import { findClient } from '../../src/resolver/clients.ts';
import { buildFolder, cannotIsolate, hasProgram, sources } from './real-resolver.ts';

export interface RealProgram {
  readonly label: string;
  /** The model of its release. */
  readonly client: Client | null;
  /** Starts it; name, family and count follow. null = it cannot be run here, and `reason` says why. */
  readonly command: readonly string[] | null;
  readonly reason: string;
}

/** What is compiled goes away with the test file. */
function folder(): string {
  const { path, remove } = buildFolder();
  after(remove);
  return path;
}

function output(program: string, ...words: string[]): string {
  const { stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  return `${stdout ?? ''}${stderr ?? ''}`;
}

function made(
  name: string,
  version: string | undefined,
  missing: string | null,
  build: () => readonly string[],
): RealProgram {
  const label = version === undefined ? name : `${name}@${version}`;
  const reason = cannotIsolate() ?? missing;
  const command = reason === null ? build() : null;
  return { label, client: findClient(label), command, reason: reason ?? '' };
}

export function realGlibc(): RealProgram {
  const [, version] = /^glibc (\d+\.\d+)/.exec(output('getconf', 'GNU_LIBC_VERSION')) ?? [];
  const missing =
    version === undefined ? 'this machine has no glibc' : hasProgram('gcc') ? null : 'needs gcc';
  return made('glibc', version, missing, () => {
    const program = join(folder(), 'lookup');
    execFileSync('gcc', ['-O1', '-o', program, sources.c]);
    return [program];
  });
}

export function realMusl(): RealProgram {
  // The loader prints its version when it is run.
  const [loader] = /ld-musl-\S+\.so\.1/.exec(readFileSync('/proc/self/maps', 'utf8')) ?? [];
  const path = `/lib/${loader ?? 'ld-musl-x86_64.so.1'}`;
  const [, version] = /Version (\d+\.\d+\.\d+)/.exec(output(path)) ?? [];
  const missing = hasProgram('musl-gcc') ? null : 'needs musl-gcc (musl-tools)';
  return made('musl', version, missing, () => {
    const program = join(folder(), 'lookup');
    execFileSync('musl-gcc', ['-O1', '-static', '-o', program, sources.c]);
    return [program];
  });
}

export function realGo(): RealProgram {
  const [, version] = /go(\d+\.\d+)/.exec(output('go', 'version')) ?? [];
  return made('go', version, hasProgram('go') ? null : 'needs Go', () => {
    const program = join(folder(), 'lookup');
    // GODEBUG and the go line of the module decide about EDNS: both as a current program has them.
    const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false' };
    execFileSync('go', ['build', '-o', program, '.'], {
      cwd: sources.go,
      env: { ...process.env, ...env },
    });
    return [program];
  });
}

/** c-ares as this Node has it. */
export function realNode(): RealProgram {
  const [version] = /^\d+\.\d+/.exec(process.versions.node) ?? [];
  return made('node-resolve', version, null, () => [process.execPath, sources.node]);
}
