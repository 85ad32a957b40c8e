import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secureRandom } from './random.ts';

test('numbers are in their range, spread over it, and differ from those drawn before', () => {
  const draw = (): readonly number[] =>
    Array.from({ length: 5000 }, () => secureRandom.integer(65_536));
  const [one, other] = [draw(), draw()];
  assert.ok(
    [...one, ...other].every((each) => Number.isInteger(each) && each >= 0 && each < 65_536),
  );
  assert.notDeepEqual(one, other);
  // Of 65 536 values 5000 draws hit 4815 on average.
  for (const each of [one, other]) assert.ok(new Set(each).size > 4700);
});

test('every number is equally likely, also where the range does not divide 2^32', () => {
  // Remainders of 2^32 would give the lower third of this range half of all draws.
  const third = 2 ** 30;
  const lower = Array.from({ length: 6000 }, () => secureRandom.integer(3 * third)).filter(
    (each) => each < third,
  ).length;
  // Six standard deviations of 2000.
  assert.ok(Math.abs(lower - 2000) < 220, String(lower));
});
