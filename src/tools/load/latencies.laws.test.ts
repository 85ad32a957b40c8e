import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Latencies } from './latencies.ts';

const times = fc.array(fc.double({ min: 0, max: 60_000, noNaN: true }), {
  minLength: 1,
  maxLength: 300,
});

test('a quantile is within a sixty-fourth and a microsecond of that of the sorted times', () => {
  fc.assert(
    fc.property(times, fc.constantFrom(0.01, 0.5, 0.9, 0.99, 1), (all, share) => {
      const latencies = new Latencies();
      for (const ms of all) latencies.add(ms);
      const sorted = all.toSorted((one, other) => one - other);
      const exact = sorted[Math.max(0, Math.ceil(share * all.length - 1e-9) - 1)]!;
      const found = latencies.quantile(share);
      assert.ok(
        found >= exact - 0.001 && found <= exact * (1 + 1 / 64) + 0.002,
        `${found}, exactly ${exact}`,
      );
    }),
  );
});

test('every time is counted between its bounds, within two buckets', () => {
  fc.assert(
    fc.property(times, (all) => {
      const latencies = new Latencies();
      for (const ms of all) latencies.add(ms);
      const bounds = [1, 10, 100];
      const counts = latencies.between(bounds);
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        all.length,
      );
      for (const [at, bound] of bounds.entries()) {
        const below = counts.slice(0, at + 1).reduce((sum, count) => sum + count, 0);
        const surely = all.filter((ms) => ms < bound * (1 - 2 / 64)).length;
        const perhaps = all.filter((ms) => ms <= bound * (1 + 2 / 64)).length;
        assert.ok(below >= surely && below <= perhaps, `${below} up to ${bound} ms`);
      }
      assert.equal(latencies.max, Math.max(...all));
    }),
  );
});
