import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LatencyHistogram } from './latency-histogram.ts';

const latencies = fc.array(fc.double({ min: 0.02, max: 60_000, noNaN: true }), {
  minLength: 1,
  maxLength: 300,
});

function filled(list: readonly number[]): LatencyHistogram {
  const histogram = new LatencyHistogram();
  for (const ms of list) histogram.add(ms);
  return histogram;
}

test('a quantile is accurate to within 5 %', () => {
  fc.assert(
    fc.property(latencies, fc.double({ min: 0, max: 1, noNaN: true }), (list, part) => {
      const truly = list.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(part * list.length)) - 1]!;
      const found = filled(list).quantile(part)!;
      assert.ok(Math.abs(found - truly) <= 0.05 * truly, `${found} for ${truly}`);
    }),
  );
});

test('merged histograms equal the histogram of all values', () => {
  fc.assert(
    fc.property(latencies, latencies, (one, other) => {
      const merged = filled(one);
      merged.merge(filled(other));
      const all = filled([...one, ...other]);
      for (const part of [0, 0.5, 0.9, 1]) assert.equal(merged.quantile(part), all.quantile(part));
      assert.equal(merged.count, all.count);
      assert.equal(merged.maxMs, all.maxMs);
    }),
  );
});

test('an empty histogram has no quantile', () => {
  assert.equal(new LatencyHistogram().quantile(0.5), null);
});
