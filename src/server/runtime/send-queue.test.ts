import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectedSocket, type SocketOwner } from './connected-socket.ts';
import { batchedUdp } from './packet-loop.ts';
import { ReceiveBatch } from './receive-batch.ts';
import { UdpSocket } from './udp-socket.ts';

const found = batchedUdp();

/** Creates an owner that records its notifications. */
function owner(): SocketOwner & { readonly told: unknown[] } {
  const told: unknown[] = [];
  return {
    told,
    waiting: 0,
    onDatagram: (bytes, start, end) => void told.push([...bytes.subarray(start, end)]),
    onError: ({ code }) => void told.push(code),
    onUnsent: (mark, { code }, left) => void told.push([mark, code, left]),
  };
}

function listening(): UdpSocket {
  const socket = new UdpSocket({ family: 4 });
  socket.bind('127.0.0.1', 0);
  return socket;
}

function send(socket: ConnectedSocket, size: number, byte: number): void {
  const at = socket.reserve(size);
  socket.out.fill(byte, at, at + size);
  socket.send(size, byte);
}

/** Returns the first byte of each received datagram. */
function arrived(receiving: ReceiveBatch, socket: UdpSocket): number[] {
  const count = Math.max(0, receiving.receive(socket.fd));
  return Array.from({ length: count }, (_, i) => receiving.slab[i * receiving.slot]!);
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('datagrams of one turn', { skip: found.available ? false : found.reason }, () => {
  const receiving = new ReceiveBatch(64);

  test('are sent at its end, in order, each from its own socket', async () => {
    const there = listening();
    const sockets = [1, 2, 3].map(() => new ConnectedSocket('', '127.0.0.1', there.port, owner()));
    sockets.forEach((socket, i) => send(socket, 20 + i, i));
    assert.deepEqual(arrived(receiving, there), []);
    await turn();
    assert.deepEqual(arrived(receiving, there), [0, 1, 2]);
    assert.deepEqual(
      [0, 1, 2].map((i) => receiving.length(i)),
      [20, 21, 22],
    );
    for (const socket of sockets) socket.close();
    there.close();
  });

  test('are sent earlier if they are numerous or long', async () => {
    const there = listening();
    const socket = new ConnectedSocket('', '127.0.0.1', there.port, owner());
    for (let i = 0; i < 65; i++) send(socket, 10, i);
    assert.equal(arrived(receiving, there).length, 64);
    await turn();
    assert.deepEqual(arrived(receiving, there), [64]);
    send(socket, 60_000, 1);
    send(socket, 6000, 2);
    assert.deepEqual(arrived(receiving, there), [1]);
    await turn();
    assert.deepEqual(arrived(receiving, there), [2]);
    socket.close();
    there.close();
  });

  test('are not sent from a closed socket', async () => {
    const there = listening();
    const [first, second] = [owner(), owner()].map(
      (each) => new ConnectedSocket('', '127.0.0.1', there.port, each),
    );
    send(first!, 10, 1);
    send(second!, 10, 2);
    first!.close();
    await turn();
    assert.deepEqual(arrived(receiving, there), [2]);
    second!.close();
    there.close();
  });

  test("are still sent if they encounter an earlier one's error", async () => {
    const gone = listening();
    const { port } = gone;
    gone.close();
    const mine = owner();
    const socket = new ConnectedSocket('', '127.0.0.1', port, mine);
    send(socket, 10, 1);
    send(socket, 10, 2);
    await turn();
    assert.deepEqual(mine.told[0], [2, 'ECONNREFUSED', true]);
    socket.close();
  });

  test('that cannot be sent do not delay others', async () => {
    const there = listening();
    const mine = owner();
    const socket = new ConnectedSocket('', '127.0.0.1', there.port, mine);
    send(socket, 10, 1);
    // Longer than any datagram can be.
    send(socket, 65_530, 2);
    send(socket, 10, 3);
    await turn();
    assert.deepEqual(mine.told, [[2, 'EMSGSIZE', false]]);
    assert.deepEqual(arrived(receiving, there), [1, 3]);
    socket.close();
    there.close();
  });
});
