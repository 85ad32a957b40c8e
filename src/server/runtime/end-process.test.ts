import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

/** Enough for startup on a slow machine. A process that hangs does so forever. */
const HANGS_MS = 60_000;

/** Installs an exit handler that never returns. */
const hanging = `
  import koffi from ${JSON.stringify(import.meta.resolve('koffi'))};
  const libc = koffi.load(null);
  libc.func('int __cxa_atexit(void *call, void *argument, void *object)')(libc.symbol('pause'), null, null);
`;

const program = resolve('src/faces/cli/main.ts');

/** Runs a command with a module preloaded. */
function run(
  t: TestContext,
  module: string,
  words: readonly string[],
): { readonly status: number | null; readonly stdout: string; readonly directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-end-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'before.mjs');
  writeFileSync(file, module);
  const { status, stdout } = spawnSync(process.execPath, ['--import', file, program, ...words], {
    encoding: 'utf8',
    timeout: HANGS_MS,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_COMPILE_CACHE: join(directory, 'cache') },
  });
  return { status, stdout, directory };
}

describe('the end of the process', { skip: process.platform !== 'linux' && 'needs Linux' }, () => {
  test('does not wait for a hanging exit handler in native code', (t) => {
    const { status, stdout } = run(t, hanging, ['version']);
    assert.match(stdout, /^ndots-\S+\n.*\nUDP: batched /);
    assert.equal(status, 0);
  });

  test('still writes the compile cache', (t) => {
    const { directory } = run(t, '', ['version']);
    const files = readdirSync(join(directory, 'cache'), { recursive: true });
    assert.ok(files.length > 10, String(files.length));
  });

  test('makes a pipe shared with other programs blocking again', () => {
    const script = '("$0" "$1" version; grep flags: /proc/self/fdinfo/1) | cat';
    const { stdout } = spawnSync('sh', ['-c', script, process.execPath, program], {
      encoding: 'utf8',
    });
    const [, flags = ''] = /^flags:\s+(\d+)$/m.exec(stdout) ?? [];
    assert.equal(parseInt(flags, 8) & 0o4000, 0, stdout);
  });
});
