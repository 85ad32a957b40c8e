import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KeyCounts, WINDOW_STEPS } from './key-counts.ts';

const WINDOW_MS = 10_000;
const stream = fc.array(
  fc.record({
    key: fc.integer({ min: 0, max: 60 }).map(String),
    gapMs: fc.integer({ min: 0, max: 400 }),
  }),
  { minLength: 1, maxLength: 600 },
);

test('a count is never too high, and too low by at most its error', () => {
  fc.assert(
    fc.property(stream, fc.integer({ min: 2, max: 80 }), (list, capacity) => {
      const counts = new KeyCounts(WINDOW_MS, capacity, () => null);
      let nowMs = 1_000_000;
      const all = list.map(({ key, gapMs }) => {
        nowMs += gapMs;
        const entry = counts.count(key, nowMs)!;
        entry.tally.queries++;
        return { key, atMs: nowMs };
      });
      const fromMs = nowMs - WINDOW_MS;
      const since = counts.startOf(fromMs);
      const full = new Map<string, number>();
      for (const { key, atMs } of all) if (atMs >= since) full.set(key, (full.get(key) ?? 0) + 1);
      const sums = counts.sums(fromMs);
      for (const [key, { tally, error }] of sums) {
        const truly = full.get(key) ?? 0;
        assert.ok(tally.queries <= truly, `${key}: ${tally.queries} of ${truly}`);
        assert.ok(
          tally.queries + error >= truly,
          `${key}: ${tally.queries} + ${error} of ${truly}`,
        );
      }
      // If every key has a slot, all counts are exact.
      if (capacity <= 60) return;
      assert.equal(sums.size, full.size);
      for (const [key, { error }] of sums) assert.equal(error, 0, key);
    }),
  );
});

test('events before the window are forgotten, and late arrivals are not counted', () => {
  const counts = new KeyCounts(WINDOW_MS, 10, () => null);
  counts.count('early', 1000);
  counts.count('now', 1000 + 2 * WINDOW_MS);
  assert.deepEqual([...counts.sums(-Infinity).keys()], ['now']);
  assert.equal(counts.count('late', 1000), null);
  counts.advance(1000 + (WINDOW_STEPS + 10) * WINDOW_MS);
  assert.equal(counts.sums(-Infinity).size, 0);
});
