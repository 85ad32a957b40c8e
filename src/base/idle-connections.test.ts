import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { IdleConnections } from './idle-connections.ts';

/** A table of two, and what opens connections at it; `gone`: the ports of those that had to go. */
function table() {
  const connections = new IdleConnections(2);
  const gone: number[] = [];
  const open = (remotePort: number): Socket => {
    const destroy = (): void => {
      gone.push(remotePort);
      socket.emit('close');
    };
    const made = Object.assign(new EventEmitter(), { remoteAddress: '10.0.0.1', remotePort });
    const socket = Object.assign(made, { destroy }) as unknown as Socket;
    connections.came(socket);
    return socket;
  };
  return { connections, gone, open };
}

test('at the limit the connection goes that has been idle longest', () => {
  const { connections, gone, open } = table();
  const first = open(1);
  open(2);
  connections.asks(first);
  connections.rests(first);
  open(3);
  assert.deepEqual(gone, [2]);
});

test('a request that is under way does not end for a newcomer while another connection is idle', () => {
  const { connections, gone, open } = table();
  connections.asks(open(1));
  open(2);
  open(3);
  assert.deepEqual(gone, [2]);
});

test('the newcomer stays though all others are busy', () => {
  const { connections, gone, open } = table();
  for (const port of [1, 2]) connections.asks(open(port));
  open(3);
  assert.deepEqual(gone, [1]);
  open(4);
  assert.deepEqual(gone, [1, 3]);
});
