/** The package as npm would publish it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** A program's exit code and output. `code` is null if a signal killed it. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to completion. npm prefers its cache and does not retry after failures. */
export function run(words: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const [program = '', ...rest] = words;
  const { status, stdout, stderr } = spawnSync(program, rest, {
    encoding: 'utf8',
    env: { ...env, npm_config_fetch_retries: '0', npm_config_prefer_offline: 'true' },
    timeout: 120_000,
  });
  return { code: status, out: stdout, err: stderr };
}

export interface Package {
  readonly tarball: string;
  readonly files: readonly string[];
}

/**
 * Packs the checkout into a directory. `dist/` was built by `npm ci`, and packing does not remove it while other tests
 * run.
 */
export function pack(directory: string): Package {
  const words = ['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', directory];
  const { code, out, err } = run(words);
  assert.equal(code, 0, err);
  // npm 11 prints a list, while later versions print an object keyed by package name.
  const printed = JSON.parse(out) as Record<
    string,
    { readonly filename: string; readonly files: readonly { readonly path: string }[] }
  >;
  const [packed] = Object.values(printed);
  return {
    tarball: join(directory, packed!.filename),
    files: packed!.files.map(({ path }) => path),
  };
}
