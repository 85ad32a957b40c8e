import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from './clock.ts';

const DAY_MS = 24 * 3600_000;

test('system timers can wait for months: an expire interval of 1000 hours is common', async () => {
  let isOver = false;
  const timer = systemClock.after(42 * DAY_MS, () => (isOver = true));
  await pause(30);
  assert.equal(isOver, false);
  timer.cancel();
});

test('a timer of several months fires on time, unless cancelled in between', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ended: string[] = [];
  systemClock.after(60 * DAY_MS, () => ended.push('one'));
  const other = systemClock.after(60 * DAY_MS, () => ended.push('other'));
  for (let day = 0; day < 59; day++) t.mock.timers.tick(DAY_MS);
  assert.deepEqual(ended, []);
  other.cancel();
  for (let day = 0; day < 2; day++) t.mock.timers.tick(DAY_MS);
  assert.deepEqual(ended, ['one']);
});
