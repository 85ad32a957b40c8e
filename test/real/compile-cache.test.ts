import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { printed, start } from '../kit/child.ts';

const program = new URL('../../bin/ndots', import.meta.url).pathname;

test('a start reuses everything that the previous one compiled, in its main thread and in its worker', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-compile-cache-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'Corefile');
  writeFileSync(file, '.:1053 {\n bind 127.0.0.1\n whoami\n cache\n errors\n}\n');
  /** The runtime's report about its cache. */
  const served = async (): Promise<string> => {
    const child = start('ndots', [program, 'serve', '-conf', file, '-workers', '1'], {
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(directory, 'cache'),
        NODE_DEBUG_NATIVE: 'COMPILE_CACHE',
      },
    });
    await printed(child, /^\.:1053/m);
    await child.stop();
    return child.output();
  };
  await served();
  const output = await served();
  const rejected = output.match(/V8 code cache for .* was rejected/g) ?? [];
  assert.deepEqual(rejected, []);
  assert.ok((output.match(/V8 code cache for .* was accepted/g) ?? []).length > 5);
});
