import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

/** Long enough for a start on a slow machine; a process that hangs does so forever. */
const HANGS_MS = 60_000;

/** Adds an exit handler to the process that never returns. */
const hanging = `
  import koffi from ${JSON.stringify(import.meta.resolve('koffi'))};
  const libc = koffi.load(null);
  libc.func('int __cxa_atexit(void *call, void *argument, void *object)')(libc.symbol('pause'), null, null);
`;

const program = resolve('src/faces/cli/main.ts');

/** Runs a verb with a module that is loaded before it. */
function run(
  t: TestContext,
  module: string,
  words: readonly string[],
): { readonly status: number | null; readonly stdout: string; readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-end-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'before.mjs');
  writeFileSync(file, module);
  const { status, stdout } = spawnSync(process.execPath, ['--import', file, program, ...words], {
    encoding: 'utf8',
    timeout: HANGS_MS,
    killSignal: 'SIGKILL',
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'cache') },
  });
  return { status, stdout, folder };
}

describe('the end of the process', { skip: process.platform !== 'linux' && 'needs Linux' }, () => {
  test('it does not wait for an exit handler of native code that hangs', (t) => {
    const { status, stdout } = run(t, hanging, ['version']);
    assert.match(stdout, /^ndots-\S+\n.*\nUDP: batched /);
    assert.equal(status, 0);
  });

  test('the compile cache is still written', (t) => {
    const { folder } = run(t, '', ['version']);
    const files = readdirSync(join(folder, 'cache'), { recursive: true });
    assert.ok(files.length > 10, String(files.length));
  });

  test('a pipe that other programs share blocks again', () => {
    const script = '("$0" "$1" version; grep flags: /proc/self/fdinfo/1) | cat';
    const { stdout } = spawnSync('sh', ['-c', script, process.execPath, program], {
      encoding: 'utf8',
    });
    const [, flags = ''] = /^flags:\s+(\d+)$/m.exec(stdout) ?? [];
    assert.equal(parseInt(flags, 8) & 0o4000, 0, stdout);
  });
});
