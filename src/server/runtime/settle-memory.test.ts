import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { collectWhileShort, droppedMax, keepMemorySettled } from './settle-memory.ts';
import type { Clock } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';

const ROUNDS = 40;
const THREADS = 4;

test('threads that collect their memory at the same moment do so, and none of them ends', async () => {
  const source = `
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    import { parentPort } from 'node:worker_threads';
    const { collectMemory } = await import(${JSON.stringify(new URL('./settle-memory.ts', import.meta.url).href)});
    let collections = 0;
    new PerformanceObserver((list) => (collections += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length))
      .observe({ entryTypes: ['gc'] });
    for (let round = 0; round < ${ROUNDS}; round++) {
      collectMemory();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    parentPort.postMessage(collections);`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const collections = await Promise.all(
    Array.from(
      { length: THREADS },
      () =>
        new Promise<number>((resolve, reject) => {
          new Worker(url).once('message', resolve).once('error', reject);
        }),
    ),
  );
  for (const count of collections) assert.ok(count >= ROUNDS, `${count} of ${ROUNDS}`);
});

test('memory outside the heap that is passed on and garbage at once does not pile up', async () => {
  const source = (tells: boolean): string => `
    import { parentPort } from 'node:worker_threads';
    const { passedThrough } = await import(${JSON.stringify(new URL('./settle-memory.ts', import.meta.url).href)});
    let most = 0;
    for (let i = 0; i < 4000; i++) {
      Buffer.allocUnsafeSlow(60_000);
      if (${tells}) passedThrough(60_000);
      if (i % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
      if (i % 50 === 49) most = Math.max(most, process.memoryUsage().arrayBuffers);
    }
    parentPort.postMessage(most / 1048576);`;
  const told = await peakOf(source(true));
  assert.ok(
    told < 12,
    `${told.toFixed(1)} MiB, and ${(await peakOf(source(false))).toFixed(1)} untold`,
  );
});

test('configurations that replace each other do not pile up', async () => {
  const source = (tells: boolean): string => `
    import { parentPort } from 'node:worker_threads';
    import { getHeapStatistics } from 'node:v8';
    const { collectDropped } = await import(${JSON.stringify(new URL('./settle-memory.ts', import.meta.url).href)});
    const size = () => { const { used_heap_size, external_memory } = getHeapStatistics(); return used_heap_size + external_memory; };
    let [begin, most] = [size(), 0];
    const serving = [];
    for (let i = 0; i < 200; i++) {
      // Those that were replaced still answer for a while.
      serving.push([new Uint8Array(300_000).fill(1), Array.from({ length: 10_000 }, (_, n) => ({ n, text: 'line ' + n + i }))]);
      if (serving.length > 4) serving.shift();
      if (${tells}) collectDropped();
      await new Promise((resolve) => setTimeout(resolve, 1));
      most = Math.max(most, size() - begin);
    }
    parentPort.postMessage(most / 1048576);`;
  const told = await peakOf(source(true));
  assert.ok(
    told < 16,
    `${told.toFixed(1)} MiB, and ${(await peakOf(source(false))).toFixed(1)} untold`,
  );
});

test('no answer waits for a collection after a reload where nothing bounds the memory', () => {
  assert.equal(droppedMax(170 << 20), 3 << 20);
  assert.equal(droppedMax(1 << 30), 16 << 20);
  assert.equal(droppedMax(Infinity), Infinity);
});

test('a process that has grown by much gives it back once there is little to do, and not again for the same', async () => {
  const clock = new VirtualClock();
  let [size, settled] = [100, 0];
  keepMemorySettled(
    clock,
    30,
    () => settled++,
    () => size,
  );
  // Idle for real, since how busy the thread is is measured by the system's clock.
  const idle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 200));
  const minute = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await idle();
      await clock.advance(20_000);
    }
  };
  size = 129;
  await minute();
  assert.equal(settled, 0, 'not for a little');
  size = 131;
  await minute();
  assert.equal(settled, 1);
  await minute();
  assert.equal(settled, 1, 'what is still there is in use');
});

/** What a worker that runs this posts: the most memory it had, MiB. */
function peakOf(source: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    new Worker(url).once('message', resolve).once('error', reject);
  });
}

test('while memory is short it is collected twice a second, or for a hundredth of the time, and else not at all', async () => {
  for (const [tookMs, collections] of [
    [0, 20],
    [6, 10],
    [35, 3],
  ] as const) {
    const time = new VirtualClock();
    let busyMs = 0;
    const clock = { ...bound(time), now: () => time.now() + busyMs };
    let short = false;
    let count = 0;
    collectWhileShort(
      clock,
      () => short,
      () => count++,
      () => {
        busyMs += tookMs;
        return true;
      },
    );
    await time.advance(2000);
    assert.equal(count, 0);
    short = true;
    await time.advance(10_000);
    assert.equal(count, collections, `${tookMs} ms`);
    short = false;
    await time.advance(10_000);
    assert.equal(count, collections);
  }
});

const bound = (clock: VirtualClock): Clock => ({
  now: () => clock.now(),
  wall: () => clock.wall(),
  after: (delayMs, run) => clock.after(delayMs, run),
});
