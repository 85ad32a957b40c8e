import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

/** A machine whose only program is an `apt-get` that records its arguments. */
function bareMachine(t: TestContext): { readonly path: string; readonly asked: () => string } {
  const path = mkdtempSync(join(tmpdir(), 'ndots-install-'));
  t.after(() => rmSync(path, { recursive: true }));
  const log = join(path, 'asked');
  writeFileSync(join(path, 'apt-get'), `#!/bin/sh\necho "$*" >> ${log}\n`);
  chmodSync(join(path, 'apt-get'), 0o755);
  return { path, asked: () => (existsSync(log) ? readFileSync(log, 'utf8') : '') };
}

const words = [
  '--input-type=module',
  '-e',
  `const { installMissing } = await import('${new URL('install.ts', import.meta.url).href}'); await installMissing();`,
];

/** Returns the output, either without a terminal or from a terminal where `typed` is entered. */
function run(path: string, ci: string, typed: string | null): string {
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env;
  const env = { ...rest, PATH: path, CI: ci, SHELL: '/bin/sh' };
  if (typed === null)
    return spawnSync(process.execPath, words, { env, encoding: 'utf8', input: '' }).stdout;
  const line = [process.execPath, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  return spawnSync('/usr/bin/script', ['-qec', line.join(' '), '/dev/null'], {
    env,
    encoding: 'utf8',
    input: `${typed}\n`,
  }).stdout;
}

const skip = process.getuid?.() === 0 ? false : 'only root installs packages';
const noTerminal = skip || (existsSync('/usr/bin/script') ? false : 'script is not installed');

describe('programs that the tests run', () => {
  test('without a terminal and outside CI, missing programs are listed and nothing is installed', (t) => {
    const { path, asked } = bareMachine(t);
    assert.match(run(path, '', null), /Not installed, so tests .* are skipped: .*\bdnsperf\b/);
    assert.equal(asked(), '');
  });

  test('in CI they are installed without asking', { skip }, (t) => {
    const { path, asked } = bareMachine(t);
    assert.match(run(path, 'true', null), /^Installing for the tests: /);
    assert.match(asked(), /update\n.*install --no-install-recommends .*\bdnsperf\b/);
  });

  test('on a terminal, answering yes installs them', { skip: noTerminal }, (t) => {
    const { path, asked } = bareMachine(t);
    assert.match(run(path, '', 'y'), /Install them with apt-get\? \[y\/N\]/);
    assert.match(asked(), /install --no-install-recommends/);
  });

  test('on a terminal, any other answer changes nothing', { skip: noTerminal }, (t) => {
    const { path, asked } = bareMachine(t);
    assert.match(run(path, '', ''), /Not installed, so tests/);
    assert.equal(asked(), '');
  });
});
