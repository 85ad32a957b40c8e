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
    // Uncompiled code boxes every float, but the second run is compiled.
    run();
    const before = allocated();
    if (before === null) return t.skip('this Node does not count allocated bytes');
    run();
    // One object per turn would take at least 12 bytes. The rest of the process may allocate a little in the meantime.
    const each = (allocated()! - before) / turns;
    assert.ok(each < 4, `${each} bytes each`);
  });
}

/** Total number of bytes ever allocated on the heap, or null before Node 26. */
function allocated(): number | null {
  const statistics: Readonly<Record<string, unknown>> = { ...getHeapStatistics() };
  const bytes = statistics['total_allocated_bytes'];
  return typeof bytes === 'number' ? bytes : null;
}
