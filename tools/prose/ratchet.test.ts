/** The number of faults of an area falls and never rises. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lowered, risen } from './ratchet.ts';

test('an area fails when its faults rise, and when it has faults and no recorded count', () => {
  assert.deepEqual(risen({ pages: 4, test: 2 }, { pages: 3, test: 2 }), ['pages']);
  assert.deepEqual(risen({ pages: 0, new: 1 }, { pages: 3 }), ['new']);
  assert.deepEqual(risen({ pages: 3 }, { pages: 3 }), []);
});

test('recording stores a count that fell, and never one that rose', () => {
  assert.deepEqual(lowered({ pages: 2, test: 9 }, { pages: 3, test: 5, gone: 1 }), {
    pages: 2,
    test: 5,
  });
});
