/** The package as npm would publish it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** How a program ended, and what it printed. `code` is null: a signal ended it. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end; npm looks into its cache first, and does not try again what fails. */
export function run(words: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const [program = '', ...rest] = words;
  const { status, stdout, stderr } = spawnSync(program, rest, {
    encoding: 'utf8',
    env: { ...env, npm_config_fetch_retries: '0', npm_config_prefer_offline: 'true' },
    timeout: 120_000,
  });
  return { code: status, out: stdout, err: stderr };
}

/** What users install. */
export interface Package {
  readonly tarball: string;
  readonly files: readonly string[];
}

/** Packs the checkout into a folder. `dist/` is what `npm ci` compiled: packing does not take it away under other tests. */
export function pack(folder: string): Package {
  const words = ['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { code, out, err } = run(words);
  assert.equal(code, 0, err);
  // npm 11 prints a list, later ones an object by name of package.
  const printed = JSON.parse(out) as Record<
    string,
    { readonly filename: string; readonly files: readonly { readonly path: string }[] }
  >;
  const [packed] = Object.values(printed);
  return {
    tarball: join(folder, packed!.filename),
    files: packed!.files.map(({ path }) => path),
  };
}
