import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Multimap } from './multimap.ts';

const step = fc.record({
  add: fc.boolean(),
  // A small set of keys, so that they collide, repeat and get removed again.
  key: fc.integer({ min: -6, max: 40 }),
  value: fc.integer({ min: 0, max: 3 }),
});

describe('a multimap', () => {
  for (const width of [1, 2, 4]) {
    test(`with keys of ${width} words matches a list of pairs`, () => {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
          const table = new Multimap(width);
          const pairs: [number, number][] = [];
          const words = (key: number): Int32Array =>
            Int32Array.from({ length: width }, (_, i) => key * (i + 1));
          for (const { add, key, value } of steps) {
            const at = pairs.findIndex(([k, v]) => k === key && v === value);
            if (add) {
              table.add(words(key), 0, value);
              pairs.push([key, value]);
            } else {
              assert.equal(table.remove(words(key), 0, value), at >= 0);
              if (at >= 0) pairs.splice(at, 1);
            }
          }
          assert.equal(table.size, pairs.length);
          for (let key = -6; key <= 40; key++) {
            const found: number[] = [];
            for (
              let slot = table.find(words(key), 0);
              slot >= 0;
              slot = table.findNext(words(key), 0, slot)
            ) {
              found.push(table.value(slot));
            }
            const wanted = pairs.filter(([k]) => k === key).map(([, v]) => v);
            const ascending = (a: number, b: number): number => a - b;
            assert.deepEqual(found.toSorted(ascending), wanted.toSorted(ascending));
          }
        }),
        { numRuns: 200 },
      );
    });
  }
});
