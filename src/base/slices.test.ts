import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from './clock.ts';
import { seededRandom } from './random.ts';
import { atOnce, inSlices, sorting } from './slices.ts';

describe('work in slices', () => {
  test('sorts as a sort in one go does, whatever the number', () => {
    const random = seededRandom(7);
    for (const length of [0, 1, 2, 2047, 2048, 2049, 4096, 4097, 10_000, 33_333]) {
      const items = Uint32Array.from({ length }, () => random.integer(length));
      const expected = items.slice().sort();
      atOnce(sorting(items, (a, b) => a - b));
      assert.deepEqual(items, expected, `${length}`);
    }
  });

  test('lets others have their turn', async () => {
    let turns = 0;
    const others = setInterval(() => turns++, 1);
    const items = Uint32Array.from({ length: 300_000 }, (_, i) => (i * 2_654_435_761) >>> 0);
    await inSlices(
      sorting(items, (a, b) => a - b),
      systemClock,
    );
    clearInterval(others);
    assert.ok(turns >= 3, `${turns} turns`);
    assert.ok(items.every((item, at) => at === 0 || items[at - 1]! <= item));
  });
});
