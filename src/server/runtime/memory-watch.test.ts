import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryWatch } from './memory-watch.ts';
import { VirtualClock } from '../base/virtual-clock.ts';

test('memory is short above three quarters of the limit, and is looked at twenty times a second at most', async () => {
  const clock = new VirtualClock();
  let own = 120;
  let looks = 0;
  const watch = new MemoryWatch(clock, 160, () => {
    looks++;
    return own;
  });
  assert.equal(watch.short, false);
  own = 121;
  assert.equal(watch.short, false);
  await clock.advance(50);
  assert.equal(watch.short, true);
  assert.equal(looks, 2);
  own = 100;
  await clock.advance(50);
  assert.equal(watch.short, false);
});

test('without a limit memory is never short, and this process takes some', () => {
  const clock = new VirtualClock();
  assert.equal(new MemoryWatch(clock, Infinity).short, false);
  if (process.platform === 'linux') assert.equal(new MemoryWatch(clock, 1024 * 1024).short, true);
});
