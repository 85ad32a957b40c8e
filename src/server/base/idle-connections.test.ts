import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Server as TcpServer, Socket } from 'node:net';
import { test } from 'node:test';
import { boundConnections, boundSenders } from './idle-connections.ts';

/**
 * A server limited to two connections, with helpers to open them. `gone` lists the ports of those that were evicted.
 */
function table() {
  const server = new EventEmitter();
  boundConnections(server as unknown as Server, 2);
  const gone: number[] = [];
  const open = (remotePort: number): Socket => {
    const destroy = (): void => {
      gone.push(remotePort);
      socket.emit('close');
    };
    const made = Object.assign(new EventEmitter(), { remoteAddress: '10.0.0.1', remotePort });
    const socket = Object.assign(made, { destroy }) as unknown as Socket;
    server.emit('connection', socket);
    return socket;
  };
  /** Starts a request; the returned function answers it. */
  const asks = (socket: Socket, headersSent = false): (() => void) => {
    const response = Object.assign(new EventEmitter(), { headersSent });
    server.emit('request', { socket }, response);
    return () => void response.emit('close');
  };
  return { asks, gone, open };
}

test('at the limit, the connection that has been idle longest is closed', () => {
  const { asks, gone, open } = table();
  const first = open(1);
  open(2);
  asks(first)();
  open(3);
  assert.deepEqual(gone, [2]);
});

test('a request in progress is not interrupted for a new connection while another connection is idle', () => {
  const { asks, gone, open } = table();
  asks(open(1));
  open(2);
  open(3);
  assert.deepEqual(gone, [2]);
});

test('the new connection stays even if all others are busy', () => {
  const { asks, gone, open } = table();
  for (const port of [1, 2]) asks(open(port));
  open(3);
  assert.deepEqual(gone, [1]);
  open(4);
  assert.deepEqual(gone, [1, 3]);
});

test('requests that wait for a decision make room before a stream that has begun', () => {
  const { asks, gone, open } = table();
  asks(open(1), true);
  asks(open(2));
  for (const port of [3, 4]) asks(open(port));
  assert.deepEqual(gone, [2, 3]);
});

test('among clients that only send, the longest-silent one is closed, never the new one', () => {
  const server = new EventEmitter();
  const gone: number[] = [];
  let told = 0;
  boundSenders(server as unknown as TcpServer, 2, () => told++);
  const open = (id: number): EventEmitter => {
    const socket = new EventEmitter();
    const destroy = (): void => {
      gone.push(id);
      socket.emit('close');
    };
    server.emit('connection', Object.assign(socket, { destroy }));
    return socket;
  };
  const first = open(1);
  open(2);
  first.emit('data');
  open(3);
  assert.deepEqual(gone, [2]);
  first.emit('close');
  open(4);
  assert.deepEqual([gone, told], [[2], 1]);
});

test('a client that reconnects from the same port before its old connection is known to be closed still counts', () => {
  const { gone, open } = table();
  for (let i = 0; i < 5; i++) {
    const before = open(7);
    const again = open(7);
    before.emit('close');
    again.emit('close');
  }
  open(7).emit('close');
  const before = open(8);
  open(8);
  before.emit('close');
  open(9);
  assert.deepEqual(gone, []);
  open(10);
  assert.deepEqual(gone, [8]);
});
