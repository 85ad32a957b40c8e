import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import { ArrivalQueue } from './arrival-queue.ts';
import type { Arrival } from './network.ts';

const fault = (server: string, kind: 'refused' | 'unreachable' = 'refused'): Arrival => ({
  kind: 'fault',
  fault: kind,
  server,
});

describe("a socket's arrivals", () => {
  test('of two replies in one TCP segment, a reader that waits for one leaves the other unread', async () => {
    const queue = new ArrivalQueue(new VirtualClock());
    const first = queue.wait(Infinity);
    queue.push(fault('192.0.2.1'));
    queue.push(fault('192.0.2.2'));
    assert.equal((await first)?.server, '192.0.2.1');
    assert.equal((await queue.wait(Infinity))?.server, '192.0.2.2');
  });

  test('a wait with a time limit ends without an arrival', async () => {
    const clock = new VirtualClock();
    const queue = new ArrivalQueue(clock);
    const waited = queue.wait(clock.now() + 5000);
    await clock.advance(5000);
    assert.equal(await waited, null);
    queue.push(fault('192.0.2.1'));
    assert.equal(queue.take()?.server, '192.0.2.1', 'what comes later stays');
  });

  test('the next send gets the last fault, once', () => {
    const queue = new ArrivalQueue(new VirtualClock());
    queue.push(fault('192.0.2.1', 'unreachable'));
    queue.push(fault('192.0.2.1'));
    assert.equal(queue.takeFault(), 'refused');
    assert.equal(queue.takeFault(), null);
  });
});
