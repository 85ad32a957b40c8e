import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import { unevenness } from './evenness.ts';

/** Thirty seconds of fifty queries each. */
const tries = Array.from({ length: 30 }, () => 50);

describe('how evenly queries are answered from second to second', () => {
  test('chance, query by query, is as uneven as chance: about one time in twenty more even than -1.64', () => {
    const random = seededRandom(7);
    const values = Array.from({ length: 400 }, () =>
      unevenness(
        tries.map(
          (count) => Array.from({ length: count }).filter(() => random.integer(100) < 60).length,
        ),
        tries,
      ),
    );
    const even = values.filter((value) => value < -1.64).length;
    assert.ok(even >= 8 && even <= 34, `${even} of 400`);
    assert.ok(Math.min(...values) > -4);
  });

  test('a number that is nearly the same each second is far more even than chance', () => {
    assert.ok(
      unevenness(
        tries.map((_, i) => 30 + (i % 2)),
        tries,
      ) < -8,
    );
  });

  test('of one second, or where all or nothing is answered, nothing is said', () => {
    assert.equal(unevenness([30], [50]), 0);
    assert.equal(unevenness([50, 50], [50, 50]), 0);
    assert.equal(unevenness([0, 0], [50, 50]), 0);
  });
});
