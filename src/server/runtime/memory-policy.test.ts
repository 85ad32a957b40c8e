import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../base/clock.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { droppedShared, MemoryPolicy } from './memory-policy.ts';

const MIB = 1024 * 1024;
const ROUNDS = 40;
const THREADS = 4;

test('threads can collect garbage at the same moment, and none of them ends', async () => {
  const source = `
    import { constants, PerformanceObserver } from 'node:perf_hooks';
    import { parentPort } from 'node:worker_threads';
    const { collectMemory } = await import(${JSON.stringify(new URL('./memory-policy.ts', import.meta.url).href)});
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

test('short-lived memory outside the heap does not pile up', async () => {
  const source = (tells: boolean): string => `
    import { parentPort } from 'node:worker_threads';
    const { passedThrough } = await import(${JSON.stringify(new URL('./memory-policy.ts', import.meta.url).href)});
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
    const { collectGrown } = await import(${JSON.stringify(new URL('./memory-policy.ts', import.meta.url).href)});
    const size = () => { const { used_heap_size, external_memory } = getHeapStatistics(); return used_heap_size + external_memory; };
    let [begin, most] = [size(), 0];
    const serving = [];
    for (let i = 0; i < 200; i++) {
      // Those that were replaced still answer for a while.
      serving.push([new Uint8Array(300_000).fill(1), Array.from({ length: 10_000 }, (_, n) => ({ n, text: 'line ' + n + i }))]);
      if (serving.length > 4) serving.shift();
      if (${tells}) collectGrown();
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

test('a reload without a memory limit causes no collection', () => {
  const clock = new VirtualClock();
  const droppedMax = (limit: number): number => new MemoryPolicy({ clock, limit }).droppedMax;
  assert.equal(droppedMax(170 * MIB), 3 * MIB);
  assert.equal(droppedMax(1024 * MIB), 16 * MIB);
  assert.equal(droppedMax(Infinity), Infinity);
});

test('an idle thread collects once after the process has grown', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  let size = 100 * MIB;
  const policy = new MemoryPolicy({ clock, rss: () => size, isBusy: () => false });
  policy.begin();
  await clock.advance(2000);
  assert.equal(counted.count, 1, 'after the start');
  size = 123 * MIB;
  await clock.advance(60_000);
  assert.equal(counted.count, 1, 'not for a little');
  size = 124 * MIB;
  await clock.advance(60_000);
  assert.equal(counted.count, 2);
});

test('a busy thread collects dropped shared memory only if there is a lot of it', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  let isBusy = true;
  new MemoryPolicy({ clock, rss: () => 0, isBusy: () => isBusy }).begin();
  await clock.advance(2000);
  counted.count = 0;
  droppedShared(5 * MIB);
  await clock.advance(60_000);
  assert.equal(counted.count, 0);
  isBusy = false;
  await clock.advance(15_000);
  assert.equal(counted.count, 1);
  await clock.advance(60_000);
  assert.equal(counted.count, 1, 'nothing more to collect');
  isBusy = true;
  droppedShared(10 * MIB);
  droppedShared(10 * MIB);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(counted.count, 2);
  isBusy = false;
  droppedShared(0.5 * MIB);
  await clock.advance(60_000);
  assert.equal(counted.count, 2, 'little is not worth a pause');
});

test('when memory is short, a thread collects at most twice a second and 1% of the time', async () => {
  for (const [tookMs, collected] of [
    [0, 20],
    [6, 10],
    [35, 3],
  ] as const) {
    const time = new VirtualClock();
    let busyMs = 0;
    const clock = { ...bound(time), now: () => time.now() + busyMs };
    let own = 0;
    let count = 0;
    const policy = new MemoryPolicy({
      clock,
      limit: 160,
      own: () => own,
      rss: () => 0,
      isBusy: () => true,
      collectGrown() {
        busyMs += tookMs;
        count++;
        return true;
      },
    });
    policy.begin();
    await time.advance(2000);
    assert.equal(count, 0);
    own = 160;
    await time.advance(10_000);
    assert.equal(count, collected, `${tookMs} ms`);
    own = 0;
    await time.advance(10_000);
    assert.equal(count, collected);
  }
});

test('memory is short above three quarters of the limit, measured at most twenty times a second', async () => {
  const clock = new VirtualClock();
  let own = 120;
  let measured = 0;
  const policy = new MemoryPolicy({
    clock,
    limit: 160,
    own() {
      measured++;
      return own;
    },
  });
  assert.equal(policy.short, false);
  own = 121;
  assert.equal(policy.short, false);
  await clock.advance(50);
  assert.equal(policy.short, true);
  assert.equal(measured, 2);
  own = 100;
  await clock.advance(50);
  assert.equal(policy.short, false);
});

test('without a limit memory is never short, and the process reports nonzero usage', () => {
  const clock = new VirtualClock();
  assert.equal(new MemoryPolicy({ clock }).short, false);
  if (process.platform === 'linux')
    assert.equal(new MemoryPolicy({ clock, limit: MIB }).short, true);
});

/** Counts collections instead of running V8's. */
function collections(t: TestContext): { count: number } {
  const runtime = globalThis as { gc?: unknown };
  const before = runtime.gc;
  const counted = { count: 0 };
  runtime.gc = () => counted.count++;
  t.after(() => {
    runtime.gc = before;
  });
  return counted;
}

/** Returns the peak memory, in MiB, of a worker that runs this code and posts its result. */
function peakOf(source: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    new Worker(url).once('message', resolve).once('error', reject);
  });
}

const bound = (clock: VirtualClock): Clock => ({
  now: () => clock.now(),
  wall: () => clock.wall(),
  after: (delayMs, run) => clock.after(delayMs, run),
});
