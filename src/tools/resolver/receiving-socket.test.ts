import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { Arrival, Fault, SentQuery } from './network.ts';
import { ReceivingSocket } from './receiving-socket.ts';

class SilentSocket extends ReceivingSocket {
  readonly protocol = 'udp';
  readonly port = 0;

  connect(): null {
    return null;
  }

  send(): SentQuery | Fault {
    return 'refused';
  }

  close(): void {
    this.clear();
  }
}

const fault = (server: string, kind: 'refused' | 'unreachable' = 'refused'): Arrival => ({
  kind: 'fault',
  fault: kind,
  server,
});

describe("a socket's arrivals", () => {
  test('of two replies in one TCP segment, a reader that waits for one leaves the other unread', async () => {
    const socket = new SilentSocket(new VirtualClock());
    const first = socket.wait(Infinity);
    socket.push(fault('192.0.2.1'));
    socket.push(fault('192.0.2.2'));
    assert.equal((await first)?.server, '192.0.2.1');
    assert.equal((await socket.wait(Infinity))?.server, '192.0.2.2');
  });

  test('a wait with a time limit ends without an arrival', async () => {
    const clock = new VirtualClock();
    const socket = new SilentSocket(clock);
    const waited = socket.wait(clock.now() + 5000);
    await clock.advance(5000);
    assert.equal(await waited, null);
    socket.push(fault('192.0.2.1'));
    assert.equal(socket.take()?.server, '192.0.2.1', 'what comes later stays');
  });

  test('the next send gets the last fault, once', () => {
    const socket = new SilentSocket(new VirtualClock());
    socket.push(fault('192.0.2.1', 'unreachable'));
    socket.push(fault('192.0.2.1'));
    assert.equal(socket.takeFault(), 'refused');
    assert.equal(socket.takeFault(), null);
  });
});
