import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { timeBuckets } from './buckets.ts';
import { SharedRegistry } from './shared-registry.ts';

const registry = new SharedRegistry(() => {});
const counter = registry.counter('a_total', 'A.', []).with();
const gauge = registry.gauge('g', 'G.', []).with();
const histogram = registry.histogram('h_seconds', 'H.', [], timeBuckets).with();

const acts: Readonly<Record<string, (turn: number) => void>> = {
  'adding to a counter': () => counter.add(0.5),
  'setting a gauge': (turn) => gauge.set(turn / 3),
  'observing a duration': (turn) => histogram.observe((turn & 63) / 1000),
};

for (const [what, act] of Object.entries(acts)) {
  test(`${what} allocates nothing`, (t) => {
    const turns = 500_000;
    const run = (): void => {
      for (let turn = 0; turn < turns; turn++) act(turn);
    };
    // Code that is not yet compiled allocates a box for every float; the second run is the compiled
    // one.
    run();
    const before = allocated();
    if (before === null) return t.skip('this Node does not count allocated bytes');
    run();
    // An object per turn would be at least 12 bytes; the rest of the process may allocate a little
    // at the same time.
    const each = (allocated()! - before) / turns;
    assert.ok(each < 4, `${each} bytes each`);
  });
}

/** Bytes ever allocated on the heap; null before Node 26. */
function allocated(): number | null {
  const statistics: Readonly<Record<string, unknown>> = { ...getHeapStatistics() };
  const bytes = statistics['total_allocated_bytes'];
  return typeof bytes === 'number' ? bytes : null;
}
