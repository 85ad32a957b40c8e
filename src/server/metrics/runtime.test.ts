import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Collection } from './collection.ts';
import { goSamples, nodeSamples, type Runtime, runtimeSamples } from './runtime.ts';

const runtime: Runtime = {
  version: 'v26.10.0',
  memory: () => ({ rss: 9e7, heapTotal: 3e7, heapUsed: 1e7, external: 5e6 }),
  allocated: () => 5e8,
  gc: () => ({
    quantiles: new Map([
      [0, 0.001],
      [1, 0.02],
    ]),
    sum: 0.5,
    count: 40,
    last: 1.7e9,
  }),
  systemThreads: () => 12,
  processors: 4,
  running: () => 42,
  threads: () => [
    { name: 'main', active: 1500, idle: 500 },
    { name: 'worker-1', active: 20, idle: 1980 },
  ],
};

test('goroutines are queries in flight plus timers, and the help says that this is not a Go program', () => {
  const goroutines = goSamples(runtime).find(({ name }) => name === 'go_goroutines');
  assert.equal(goroutines?.value, 42);
  assert.ok(goSamples(runtime).every(({ help }) => help.includes('not a Go program')));
});

test('event loop times are per-thread counters in seconds', () => {
  const active = nodeSamples(runtime).filter(
    (s) => s.name === 'nodejs_eventloop_active_seconds_total',
  );
  assert.deepEqual(
    active.map(({ kind, labels, value }) => [kind, labels['thread'], value]),
    [
      ['counter', 'main', 1.5],
      ['counter', 'worker-1', 0.02],
    ],
  );
});

test('all runtime values together scrape without an error', () => {
  const errors: unknown[] = [];
  const collection = new Collection({ onError: (error) => errors.push(error) });
  collection.sample(() => runtimeSamples(runtime));
  const text = collection.print('text');
  assert.deepEqual(errors, []);
  assert.match(text, /^go_info\{version="v26.10.0"\} 1$/m);
  assert.match(text, /^go_threads 12$/m);
  assert.match(
    text,
    /^# TYPE go_gc_duration_seconds summary\ngo_gc_duration_seconds\{quantile="0"\} 0.001\ngo_gc_duration_seconds\{quantile="1"\} 0.02\ngo_gc_duration_seconds_sum 0.5\ngo_gc_duration_seconds_count 40$/m,
  );
  assert.match(text, /^nodejs_heap_size_used_bytes 1e\+07$/m);
});
