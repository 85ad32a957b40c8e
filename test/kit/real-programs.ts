/** This machine's real resolvers, which are compared with their models. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Client } from '../../src/tools/resolver/client.ts';
import { findClient } from '../../src/tools/resolver/clients.ts';
import { realClient } from '../../src/tools/lab/real-clients.ts';
import { cannotIsolate, nodeClient } from './real-resolver.ts';

/** A program that looks up names with one real resolver. */
export interface RealProgram {
  readonly label: string;
  /** The model for the program's release. */
  readonly client: Client | null;
  /** The command line before name, family and count, or null if it cannot run here (see `reason`). */
  readonly command: readonly string[] | null;
  readonly reason: string;
}

function output(program: string, ...words: string[]): string {
  const { stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  return `${stdout ?? ''}${stderr ?? ''}`;
}

async function made(name: string, version: string | undefined): Promise<RealProgram> {
  const { words, missing } = await realClient(name, process.env);
  return labelled(name, version, words, version === undefined ? `no ${name} here` : missing);
}

function labelled(
  name: string,
  version: string | undefined,
  words: readonly string[] | null,
  missing: string | null,
): RealProgram {
  const label = version === undefined ? name : `${name}@${version}`;
  const reason = cannotIsolate() ?? missing;
  const command = reason === null ? words : null;
  return { label, client: findClient(label), command, reason: reason ?? '' };
}

export function realGlibc(): Promise<RealProgram> {
  return made('glibc', /^glibc (\d+\.\d+)/.exec(output('getconf', 'GNU_LIBC_VERSION'))?.[1]);
}

export function realMusl(): Promise<RealProgram> {
  // The loader prints its version when run.
  const [loader] = /ld-musl-\S+\.so\.1/.exec(readFileSync('/proc/self/maps', 'utf8')) ?? [];
  const path = `/lib/${loader ?? 'ld-musl-x86_64.so.1'}`;
  return made('musl', /Version (\d+\.\d+\.\d+)/.exec(output(path))?.[1]);
}

export function realGo(): Promise<RealProgram> {
  return made('go', /go(\d+\.\d+)/.exec(output('go', 'version'))?.[1]);
}

/** c-ares as built into this Node. */
export function realNode(): RealProgram {
  const [version] = /^\d+\.\d+/.exec(process.versions.node) ?? [];
  return labelled('node-resolve', version, [process.execPath, nodeClient], null);
}
