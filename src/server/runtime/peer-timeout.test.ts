import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, Socket, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { libc, LibcMissing } from './libc.ts';
import { timeOutPeer } from './peer-timeout.ts';

function missing(): string | false {
  try {
    libc();
    return false;
  } catch (error) {
    if (error instanceof LibcMissing) return error.message;
    throw error;
  }
}

test(
  'a connection gets the time-out, and a socket without a descriptor does not',
  { skip: missing() },
  async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(socket, 'connect');
    assert.equal(timeOutPeer(socket, 30_000), true);
    assert.equal(timeOutPeer(new Socket(), 30_000), false);
    socket.destroy();
    server.close();
  },
);
