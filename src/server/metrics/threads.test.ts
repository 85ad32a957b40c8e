import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { timeBuckets } from './buckets.ts';
import { Collection } from './collection.ts';
import type { Registration } from './registration.ts';
import { SharedRegistry } from './shared-registry.ts';

// This file is both the test on the main thread and the worker that the test starts.
if (isMainThread) {
  test('a scrape sees the counts of busy workers that never return to their event loop', async () => {
    const collection = new Collection();
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const workers = ['worker-1', 'worker-2'].map((name) => startWorker(collection, name, stop));
    try {
      await Promise.all(workers.map((worker) => once(worker, 'online')));
      // Both workers loop until the shared word changes, so they cannot have answered a request.
      const early = await waitUntil(
        () => requestsIn(collection),
        (count) => count > 1000,
      );
      const later = await waitUntil(
        () => requestsIn(collection),
        (count) => count > early,
      );
      assert.ok(later > early);
    } finally {
      Atomics.store(stop, 0, 1);
    }
    await Promise.all(workers.map((worker) => once(worker, 'exit')));
    const counted = requestsIn(collection);
    for (const name of ['worker-1', 'worker-2']) collection.retire(name);
    assert.equal(requestsIn(collection), counted);
    const observed = /^seconds_count (.*)$/m.exec(collection.print('openmetrics'))?.[1];
    assert.equal(Number(observed), counted);
  });
} else {
  const { stop } = workerData as { stop: Int32Array };
  const registry = new SharedRegistry((event) => parentPort!.postMessage(event));
  const requests = registry.counter('requests_total', 'Queries.', ['type']).with('A');
  const seconds = registry.histogram('seconds', 'Durations.', [], timeBuckets).with();
  while (Atomics.load(stop, 0) === 0) {
    requests.add(1);
    seconds.observe(0.003);
  }
}

function startWorker(collection: Collection, name: string, stop: Int32Array): Worker {
  const worker = new Worker(new URL(import.meta.url), { workerData: { stop } });
  worker.on('message', (event: Registration) => collection.add(name, event));
  return worker;
}

function requestsIn(collection: Collection): number {
  const text = collection.print('openmetrics');
  return Number(/^requests_total\{type="A"\} (.*)$/m.exec(text)?.[1] ?? 0);
}

async function waitUntil(read: () => number, enough: (value: number) => boolean): Promise<number> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const value = read();
    if (enough(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('the workers did not count');
}
