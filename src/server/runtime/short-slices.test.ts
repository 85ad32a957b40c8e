import assert from 'node:assert/strict';
import { getPriority } from 'node:os';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

test('the thread has the nice value, or keeps its own where that is not permitted', async (t) => {
  // A separate thread: this one continues with other tests.
  const code = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(new URL('./short-slices.ts', import.meta.url).href)}).then(({ runInShortSlices }) => {
      const done = runInShortSlices(-5);
      const stat = require('node:fs').readFileSync('/proc/thread-self/stat', 'latin1');
      parentPort.postMessage({ done, nice: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) });
    });`;
  if (process.platform !== 'linux') return t.skip('needs Linux');
  const worker = new Worker(code, { eval: true });
  const { done, nice } = await new Promise<{ done: boolean; nice: number }>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  await worker.terminate();
  assert.equal(nice, done ? -5 : getPriority());
});
