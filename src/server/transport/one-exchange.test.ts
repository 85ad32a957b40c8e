import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';

import { queryBytes } from '../../../test/kit/loopback.ts';
import { askDatagram, askStream } from './one-exchange.ts';

/** A name server that replies to each datagram with these messages. */
async function server(
  t: TestContext,
  replies: (query: Buffer) => readonly Buffer[],
): Promise<number> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    for (const reply of replies(query)) socket.send(reply, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return socket.address().port;
}

function replyTo(query: Buffer): Buffer {
  const reply = Buffer.from(query);
  reply[2]! |= 0x80;
  return reply;
}

const terms = { source: '', timeoutMs: 100, tries: 2 };

describe('a single exchange over UDP', () => {
  test('ends with the reply to its question, whatever came before', async (t) => {
    const port = await server(t, (query) => {
      const otherId = replyTo(query);
      otherId[1]! ^= 1;
      const otherName = replyTo(query);
      otherName[13]! ^= 1;
      const otherOpcode = replyTo(query);
      otherOpcode[2]! ^= 0x20;
      const spelled = replyTo(query);
      spelled[13]! ^= 0x20;
      return [query, otherId, otherName, otherOpcode, spelled];
    });
    const message = queryBytes('zone.example.', 7);
    const reply = await askDatagram(message, { host: '127.0.0.1', port }, terms);
    assert.equal(reply[13], message[13]! ^ 0x20);
  });

  test('retries, and fails after the last try', async (t) => {
    let asked = 0;
    const port = await server(t, () => {
      asked++;
      return [];
    });
    const message = queryBytes('zone.example.', 7);
    await assert.rejects(askDatagram(message, { host: '127.0.0.1', port }, terms), /no reply from/);
    assert.equal(asked, 2);
  });
});

describe('an unreachable server', () => {
  const message = queryBytes('zone.example.', 7);

  test("is reported in the upstreams' words, over TCP and UDP", async () => {
    const port = await closedPort();
    const { signal } = new AbortController();
    await assert.rejects(
      askStream(
        [message],
        { host: '127.0.0.1', port },
        { idleMs: 900, totalMs: 900, signal },
        () => true,
      ),
      { message: `dial tcp 127.0.0.1:${port}: connect: connection refused` },
    );
    // A socket cannot be connected to a broadcast address.
    await assert.rejects(askDatagram(message, { host: '255.255.255.255', port }, terms), {
      message: /^dial udp 255\.255\.255\.255:\d+: connect: /,
    });
  });
});

/** Finds a port without a listener. */
async function closedPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}
