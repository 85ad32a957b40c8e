import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Pacing } from './pacing.ts';

/**
 * Sends as many queries as may be sent at `now`.
 * @returns the number of queries and their epoch
 */
function burst(pacing: Pacing, now: number, wanted = 1000): [sent: number, epoch: number] {
  let sent = 0;
  let epoch = 0;
  while (sent < wanted && pacing.admits(now)) {
    epoch = pacing.sent();
    sent++;
  }
  return [sent, epoch];
}

describe('pacing', () => {
  test('a limited number of queries is sent before the upstream answers', () => {
    const pacing = new Pacing(10);
    const [sent, epoch] = burst(pacing, 1000);
    assert.equal(sent, 10);
    pacing.ended(epoch, true);
    pacing.ended(epoch, true);
    assert.equal(burst(pacing, 1001)[0], 2);
  });

  test('while it answers anything, queries sent 10 ms ago count as read, and more may be sent', () => {
    const pacing = new Pacing(10);
    const [, epoch] = burst(pacing, 1000);
    pacing.ended(epoch, true);
    assert.equal(burst(pacing, 1004)[0], 1);
    pacing.ended(epoch, true);
    assert.equal(burst(pacing, 1009)[0], 1);
    pacing.ended(epoch, true);
    assert.ok(burst(pacing, 1011)[0] >= 8);
  });

  test('while it is silent, no query counts as read for 200 ms', () => {
    const pacing = new Pacing(10);
    const [, epoch] = burst(pacing, 1000, 5);
    pacing.ended(epoch, true);
    let sent = 4;
    for (let now = 1001; now < 1190; now += 3) sent += burst(pacing, now)[0];
    assert.equal(sent, 10);
    for (let now = 1190; now < 1230; now += 3) sent += burst(pacing, now)[0];
    assert.equal(sent, 20);
  });

  test('the end of a silence lets others be sent at once, and forgets the queries sent during it', () => {
    const pacing = new Pacing(10);
    const epochs = [burst(pacing, 1000)[1]];
    for (let now = 1005; now < 1100; now += 5) burst(pacing, now);
    pacing.admits(1100);
    pacing.ended(epochs[0]!, true);
    assert.ok(burst(pacing, 1100)[0] >= 9);
  });

  test('slow names delay no other query while others are answered', () => {
    const pacing = new Pacing(10);
    let sent = 0;
    for (let now = 1000; now < 2000; now += 5) {
      const [count, epoch] = burst(pacing, now, 4);
      sent += count;
      // One query is answered soon, and the others after several seconds.
      if (count > 0) pacing.ended(epoch, true);
    }
    assert.equal(sent, 800);
  });

  test('a query that times out is not a sign of life', () => {
    const pacing = new Pacing(10);
    const [, epoch] = burst(pacing, 1000);
    for (let now = 1005; now < 1030; now += 5) pacing.admits(now);
    for (let i = 0; i < 3; i++) pacing.ended(epoch, false);
    assert.equal(burst(pacing, 1031)[0], 3);
  });
});
