import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from './simulation.ts';

test('100 seeds: every answer is one that was true, and right when the faults end', async (t) => {
  const first = Math.floor(Math.random() * 2 ** 31);
  t.diagnostic(`seeds from ${first}`);
  let judged = 0;
  for (let seed = first; seed < first + 100; seed++)
    judged += (await simulate(seed, { storms: 3, steps: 60 })).judged;
  assert.ok(judged > 100_000, String(judged));
});
