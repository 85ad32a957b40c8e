import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secureRandom } from './random.ts';

test('numbers stay in range, are spread over it, and differ from earlier draws', () => {
  const draw = (): readonly number[] =>
    Array.from({ length: 5000 }, () => secureRandom.integer(65_536));
  const [one, other] = [draw(), draw()];
  assert.ok(
    [...one, ...other].every((each) => Number.isInteger(each) && each >= 0 && each < 65_536),
  );
  assert.notDeepEqual(one, other);
  // On average, 5000 draws from 65 536 values hit 4815 distinct ones.
  for (const each of [one, other]) assert.ok(new Set(each).size > 4700);
});

test('all numbers are equally likely even if the range does not divide 2^32', () => {
  // With plain remainders of 2^32, the lower third of this range would get half of all draws.
  const third = 2 ** 30;
  const lower = Array.from({ length: 6000 }, () => secureRandom.integer(3 * third)).filter(
    (each) => each < third,
  ).length;
  // Six standard deviations around 2000.
  assert.ok(Math.abs(lower - 2000) < 220, String(lower));
});
