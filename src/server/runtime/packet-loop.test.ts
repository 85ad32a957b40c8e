import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

import { ERRNO } from './libc.ts';
import { Memory } from './memory.ts';
import { batchedUdp, packetLoop } from './packet-loop.ts';
import { BATCH, ReceiveBatch } from './receive-batch.ts';
import { SendBatch } from './send-batch.ts';
import { NAME_SIZE, NAME_SLOT, readPort, writeSocketAddress } from './socket-address.ts';
import { UdpSocket } from './udp-socket.ts';

const run = promisify(execFile);
const found = batchedUdp();
const noInfo = new Uint8Array(0);
const skip = found.available ? false : found.reason;

/**
 * Builds a separate program that opens a socket on the packet loop and then runs `then` (which can use `watch`,
 * `socket`, `Worker`).
 */
const program = (then: string): string => `
  import { Worker, parentPort } from 'node:worker_threads';
  import { packetLoop } from '${new URL('packet-loop.ts', import.meta.url).href}';
  import { UdpSocket } from '${new URL('udp-socket.ts', import.meta.url).href}';
  const socket = new UdpSocket({ family: 4 });
  socket.bind('127.0.0.1', 0);
  const watch = packetLoop().watch(socket.fd, () => {});
  ${then}
`;

function node(script: string): Promise<{ stdout: string }> {
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  return run(process.execPath, words, { timeout: 20_000 });
}

/**
 * Sends datagrams of these lengths in one batch to the socket's peer.
 * @returns the last error number, or 0
 */
function sendToPeer(socket: UdpSocket, ...lengths: number[]): number {
  const sending = new SendBatch(4096);
  const none = new Uint8Array(0);
  for (const length of lengths) sending.addTo(length, none, 0, none, 0);
  sending.flush(socket.fd);
  sending.free();
  return sending.errno;
}

describe('packet loop', { skip }, () => {
  test('is woken by datagrams, which arrive in batches with sender and length', async () => {
    const loop = packetLoop();
    const socket = new UdpSocket({ family: 4 });
    socket.bind('127.0.0.1', 0);
    const peer = createSocket('udp4');
    peer.bind(0, '127.0.0.1');
    await once(peer, 'listening');
    const got: string[] = [];
    const watch = loop.watch(socket.fd, () => {
      const { receiving } = loop;
      const count = receiving.receive(socket.fd);
      for (let i = 0; i < count; i++) {
        const start = i * receiving.slot;
        assert.equal(readPort(receiving.names, i * NAME_SLOT), peer.address().port);
        assert.equal(receiving.nameLength(i), NAME_SIZE[4]);
        got.push(
          Buffer.from(receiving.slab.subarray(start, start + receiving.length(i))).toString(),
        );
      }
    });
    const want = Array.from({ length: 150 }, (_, i) => 'x'.repeat(i));
    for (const text of want) peer.send(text, socket.port, '127.0.0.1');
    while (got.length < want.length) await new Promise((resolve) => setTimeout(resolve, 2));
    assert.deepEqual(got, want);
    watch.close();
    socket.close();
    peer.close();
  });

  test('an exception in a drain surfaces as uncaught', async () => {
    const script = program(`
      watch.close();
      const { createSocket } = await import('node:dgram');
      packetLoop().watch(socket.fd, () => { throw new Error('from the drain'); });
      createSocket('udp4').send('x', socket.port, '127.0.0.1');
      process.on('uncaughtException', (error) => { console.log(error.message); process.exit(0); });
    `);
    assert.equal((await node(script)).stdout, 'from the drain\n');
  });

  test('an open socket keeps the process alive, a closed or unreferenced one does not', async () => {
    await node(program('watch.close(); socket.close();'));
    await node(program('watch.unref();'));
    const alive = node(
      program('setTimeout(() => { console.log("alive"); process.exit(0); }, 200).unref();'),
    );
    assert.equal((await alive).stdout, 'alive\n');
  });

  test('a worker with open sockets can be terminated, and the process can exit under it', async () => {
    const inner = JSON.stringify(program("parentPort.postMessage('open');"));
    const spawn = `
      import { Worker } from 'node:worker_threads';
      import { once } from 'node:events';
      const start = async () => {
        const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(${inner})));
        await once(worker, 'message');
        return worker;
      };
    `;
    await node(
      `${spawn} for (let i = 0; i < 3; i++) await (await start()).terminate(); console.log('done');`,
    );
    await node(`${spawn} await start(); process.exit(0);`);
  });
});

describe('batches', { skip }, () => {
  test('a failure for one address affects only that datagram', async () => {
    const from = new UdpSocket({ family: 4 });
    from.bind('127.0.0.1', 0);
    const to = new UdpSocket({ family: 4 });
    to.bind('127.0.0.1', 0);
    const name = new Memory(NAME_SLOT);
    const address = (host: string, port: number): Uint8Array =>
      name.bytes.slice(0, writeSocketAddress(name, 0, host, port));
    const sending = new SendBatch(4096);
    for (const [i, port] of [to.port, 0, to.port, 0, to.port].entries()) {
      sending.slab[sending.at] = i;
      sending.addTo(1, address('127.0.0.1', port), NAME_SIZE[4], noInfo, 0);
    }
    assert.equal(sending.flush(from.fd), 3);
    assert.equal(sending.failed, 2);
    assert.equal(sending.count, 0);
    const receiving = new ReceiveBatch(64);
    assert.equal(receiving.receive(to.fd), 3);
    assert.deepEqual(
      [0, 1, 2].map((i) => receiving.slab[i * receiving.slot]),
      [0, 2, 4],
    );
    assert.equal(receiving.receive(to.fd), -ERRNO.EAGAIN);
    for (const part of [sending, receiving, name]) part.free();
    from.close();
    to.close();
  });

  test('a datagram longer than its slot is distinguished from one that fits exactly', async () => {
    const to = new UdpSocket({ family: 4 });
    to.bind('127.0.0.1', 0);
    const from = new UdpSocket({ family: 4 });
    from.connect('127.0.0.1', to.port);
    assert.equal(sendToPeer(from, 100, 101), 0);
    const receiving = new ReceiveBatch(100);
    assert.equal(receiving.receive(to.fd), 2);
    assert.deepEqual([receiving.length(0), receiving.isCut(0)], [100, false]);
    assert.deepEqual([receiving.length(1), receiving.isCut(1)], [100, true]);
    receiving.free();
    from.close();
    to.close();
  });

  test('datagrams that do not fit into a batch come with the next one', () => {
    const to = new UdpSocket({ family: 4, buffer: 1 << 20 });
    to.bind('127.0.0.1', 0);
    const from = new UdpSocket({ family: 4 });
    from.connect('127.0.0.1', to.port);
    sendToPeer(from, ...Array<number>(BATCH).fill(1));
    sendToPeer(from, 1, 1, 1);
    const receiving = new ReceiveBatch(64);
    assert.equal(receiving.receive(to.fd), BATCH);
    assert.equal(receiving.receive(to.fd), 3);
    receiving.free();
    from.close();
    to.close();
  });

  test('all remaining views of freed memory are empty', () => {
    const memory = new Memory(100);
    const { bytes, words } = memory;
    assert.equal(bytes.length, 112);
    memory.setPointer(2, 0x7fff_1234_5678);
    assert.deepEqual([words[2], words[3]], [0x1234_5678, 0x7fff]);
    memory.free();
    memory.free();
    assert.equal(bytes.length, 0);
    assert.equal(words.length, 0);
  });

  test('a refused datagram is reported once, as an error on the socket', async () => {
    const gone = new UdpSocket({ family: 4 });
    gone.bind('127.0.0.1', 0);
    const { port } = gone;
    gone.close();
    const socket = new UdpSocket({ family: 4 });
    socket.connect('127.0.0.1', port);
    assert.equal(sendToPeer(socket, 1), 0);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const receiving = new ReceiveBatch(64);
    assert.equal(receiving.receive(socket.fd), -111);
    assert.equal(receiving.receive(socket.fd), -ERRNO.EAGAIN);
    receiving.free();
    socket.close();
  });

  test('a refused datagram is reported with the next batch, whose other datagrams are sent', async () => {
    const gone = new UdpSocket({ family: 4 });
    gone.bind('127.0.0.1', 0);
    const { port } = gone;
    gone.close();
    const socket = new UdpSocket({ family: 4 });
    socket.connect('127.0.0.1', port);
    sendToPeer(socket, 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const back = new UdpSocket({ family: 4 });
    back.bind('127.0.0.1', port);
    assert.equal(sendToPeer(socket, 2, 3), ERRNO.ECONNREFUSED);
    const receiving = new ReceiveBatch(64);
    assert.equal(receiving.receive(back.fd), 1);
    assert.equal(receiving.length(0), 3);
    receiving.free();
    socket.close();
    back.close();
  });

  test('system errors carry their symbolic names', () => {
    const socket = new UdpSocket({ family: 4 });
    assert.throws(() => socket.bind('192.0.2.1', 53), { code: 'EADDRNOTAVAIL', syscall: 'bind' });
    assert.throws(() => socket.bind('not an address', 53), /not an IP address/);
    socket.close();
    assert.throws(() => new UdpSocket({ family: 4, device: 'no-such-device' }), {
      message: 'setsockopt SO_BINDTODEVICE: ENODEV',
    });
    const six = new UdpSocket({ family: 6 });
    assert.throws(() => six.bind('fe80::1%no-such-device', 53), { code: 'ENODEV' });
    six.close();
  });
});
