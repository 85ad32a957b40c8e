import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secureRandom } from './random.ts';

test('what is drawn lies in its range, whole pools of it, and is never the same again', () => {
  const draw = (): readonly number[] =>
    Array.from({ length: 5000 }, () => secureRandom.integer(65_536));
  const [one, other] = [draw(), draw()];
  assert.ok([...one, ...other].every((each) => Number.isInteger(each) && each < 65_536));
  assert.notDeepEqual(one, other);
  // Of 65 536 values 5000 draws hit 4815 on average.
  for (const each of [one, other]) assert.ok(new Set(each).size > 4700);
});
