import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { atOnce } from './slices.ts';
import { sortSlowly } from './sort-slowly.ts';

test('property: sorts stably and like `sort`, whatever the input order', () => {
  const order = (a: number, b: number): number => (a >>> 8) - (b >>> 8);
  const lists = fc.tuple(fc.integer({ min: 0, max: 6000 }), fc.integer(), fc.boolean());
  fc.assert(
    fc.property(lists, ([length, seed, isOrdered]) => {
      const numbers = Uint32Array.from(
        { length },
        (_, i) => Math.imul(i + seed, 0x9e3779b1) >>> 16,
      );
      if (isOrdered) numbers.sort(order);
      const expected = [...numbers].toSorted(order);
      atOnce(sortSlowly(numbers, order));
      assert.deepEqual([...numbers], expected);
    }),
    { numRuns: 60 },
  );
});
