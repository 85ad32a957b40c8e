import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Pacing } from './pacing.ts';

/** Sends as many as may leave at `now`. @returns how many, and the epoch */
function burst(pacing: Pacing, now: number, wanted: number): [sent: number, epoch: number] {
  let sent = 0;
  let epoch = 0;
  while (sent < wanted && pacing.admits(now)) {
    epoch = pacing.sent();
    sent++;
  }
  return [sent, epoch];
}

describe('pacing', () => {
  test('only so many queries leave before the upstream answers', () => {
    const pacing = new Pacing(10);
    const [sent, epoch] = burst(pacing, 1000, 50);
    assert.equal(sent, 10);
    pacing.ended(epoch);
    pacing.ended(epoch);
    assert.equal(burst(pacing, 1001, 50)[0], 2);
  });

  test('what was sent 10 ms ago has been read, or lost: others may leave', () => {
    const pacing = new Pacing(10);
    burst(pacing, 1000, 10);
    assert.equal(burst(pacing, 1004, 50)[0], 0);
    assert.equal(burst(pacing, 1005, 50)[0], 0);
    assert.equal(burst(pacing, 1010, 10)[0], 10);
  });

  test('late answers to old queries make no room of their own', () => {
    const pacing = new Pacing(10);
    const [, epoch] = burst(pacing, 1000, 10);
    assert.equal(burst(pacing, 1010, 10)[0], 10);
    for (let i = 0; i < 10; i++) pacing.ended(epoch);
    assert.equal(burst(pacing, 1011, 10)[0], 0);
  });

  test('an upstream far away is given more and more, one that only is slow is not', () => {
    const far = new Pacing(10);
    for (let now = 1000; now < 1100; now += 5) burst(far, now, 1000);
    assert.ok(far.limit > 1000, String(far.limit));
    const slow = new Pacing(10);
    const waiting: number[] = [];
    for (let now = 1000; now < 1100; now += 5) {
      for (let i = 0; i < 8 && waiting.length > 0; i++) slow.ended(waiting.shift()!);
      const [sent, epoch] = burst(slow, now, 1000);
      for (let i = 0; i < sent; i++) waiting.push(epoch);
    }
    assert.equal(slow.limit, 10);
  });

  test('a lost query halves what was given, once a second', () => {
    const pacing = new Pacing(10);
    for (let now = 1000; now < 1050; now += 5) burst(pacing, now, 1000);
    const before = pacing.limit;
    pacing.lost();
    pacing.lost();
    assert.equal(pacing.limit, before / 2);
    for (let now = 3000; now < 60_000; now += 2000) {
      pacing.admits(now);
      pacing.lost();
    }
    assert.equal(pacing.limit, 10);
  });
});
