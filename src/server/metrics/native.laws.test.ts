import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sizeBuckets, timeBuckets } from './buckets.ts';
import { BLOCK_CELLS } from './cells.ts';
import { NativeRange } from './native.ts';

const bounds = fc
  .uniqueArray(fc.double({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 8 })
  .map((list) => list.toSorted((a, b) => a - b));

test("a value is above the previous bucket's bound and not above its own bucket's bound", () => {
  const range = new NativeRange(timeBuckets);
  fc.assert(
    fc.property(fc.double({ min: 2 ** -20, max: 60, minExcluded: true, noNaN: true }), (value) => {
      const index = range.indexOf(range.cellOf(value));
      // Bounds are not exact fractions, so the result of a different computation may differ in the last digit.
      assert.ok(value <= 2 ** (index / 16) * (1 + 1e-15), `${value} above bucket ${index}`);
      assert.ok(value > 2 ** ((index - 1) / 16) * (1 - 1e-15), `${value} below bucket ${index}`);
    }),
  );
});

test('powers of two are the bounds of their buckets', () => {
  for (const range of [new NativeRange(timeBuckets), new NativeRange(sizeBuckets)])
    for (let power = 0; power <= 5; power++)
      assert.equal(range.indexOf(range.cellOf(2 ** power)), power * 16);
});

test('for any bounds and value, one of the cells counts it, and a block holds all cells', () => {
  fc.assert(
    fc.property(bounds, fc.double({ noNaN: true }), (list, value) => {
      const range = new NativeRange(list);
      const cell = range.cellOf(value);
      assert.ok(Number.isInteger(cell) && cell >= 0 && cell < range.cells, `cell ${cell}`);
      assert.ok(range.cells + 256 + 3 <= BLOCK_CELLS);
    }),
  );
});

test('a larger value is never in a lower bucket', () => {
  const range = new NativeRange(sizeBuckets);
  const value = fc.double({ noNaN: true });
  fc.assert(
    fc.property(value, value, (one, other) => {
      assert.ok(
        range.cellOf(Math.min(one, other)) <= range.cellOf(Math.max(one, other)),
        'the order is lost',
      );
    }),
  );
});
