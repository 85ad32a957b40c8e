import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test('a worker’s heap has its own limit, whatever limit the command line sets for the main thread', () => {
  const program = `(async () => {
    const { blankThread, startSpareThread } = await import(${JSON.stringify(new URL('./spare-thread.ts', import.meta.url).href)});
    const { getHeapStatistics } = await import('node:v8');
    startSpareThread();
    const both = [blankThread(40).worker, blankThread(64).worker];
    const [worker, other] = both;
    await Promise.all(both.map((each) => new Promise((resolve) => each.once('online', resolve))));
    const limits = [getHeapStatistics(), await worker.getHeapStatistics(), await other.getHeapStatistics()];
    console.log(JSON.stringify(limits.map((one) => one.heap_size_limit / 1048576)));
    process.exit(0);
  })()`;
  const flags = ['--max-old-space-size=192', '--max-semi-space-size=2'];
  const text = execFileSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' });
  const [main, small, large] = JSON.parse(text) as [number, number, number];
  // Each limit applies in addition to some MiB for the young generation.
  assert.ok(main >= 192 && main < 205, text);
  assert.ok(small >= 40 && small < 55, text);
  assert.ok(large >= 64 && large < 80, text);
});
