import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { freePorts } from '../../../test/kit/free-ports.ts';
import { secureRandom } from '../../server/base/random.ts';
import { TYPE } from '../../server/wire/iana.ts';
import { systemProbeNetwork } from './system-network.ts';

const network = systemProbeNetwork(secureRandom, () => assert.fail('no lookup'));
const questions = ['a.example.', 'b.example.'].map((name) => ({ name, type: 1, edns: null }));
const terms = { protocol: 'udp', sourcePort: 0, timeoutMs: 300, tries: 2 } as const;

function replyTo(query: Uint8Array): Buffer {
  const reply = Buffer.from(query);
  reply[2]! |= 0x80;
  return reply;
}

async function udpServer(t: TestContext, replies: (query: Buffer) => readonly Buffer[]) {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address }) => {
    for (const reply of replies(query)) socket.send(reply, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { host: '127.0.0.1', port: socket.address().port };
}

test('several queries to a closed port fail at once, like a single one', async () => {
  const [port] = await freePorts(1);
  const network = systemProbeNetwork(secureRandom, () => assert.fail());
  const terms = { protocol: 'udp', sourcePort: 0, timeoutMs: 20_000, tries: 2 } as const;
  const asked = [TYPE.A, TYPE.AAAA].map((type) => ({ name: 'a.example.', type, edns: null }));
  const found = await network.ask({ host: '127.0.0.1', port: port! }, asked, terms);
  // A query that timed out would report the timeout instead.
  for (const { failure } of found) assert.equal(failure, `no server listens at 127.0.0.1:${port}`);
});

describe('the questions of a check go from one socket, and', () => {
  test('those whose replies are lost are retried', async (t) => {
    let asked = 0;
    const server = await udpServer(t, (query) => (++asked === 2 ? [] : [replyTo(query)]));
    const [a, b] = await network.ask(server, questions, terms);
    assert.deepEqual([a!.sent, a!.lost, a!.failure], [1, 0, null]);
    assert.deepEqual([b!.sent, b!.lost, b!.failure], [2, 1, null]);
    assert.equal(asked, 3);
  });

  test('an unreadable reply does not count, and is the reported failure', async (t) => {
    const server = await udpServer(t, (query) => {
      const garbled = replyTo(query);
      garbled.writeUInt16BE(7, 6);
      return [garbled];
    });
    const [a] = await network.ask(server, questions.slice(0, 1), { ...terms, tries: 1 });
    assert.match(a!.failure!, /^received a reply of 27 bytes that cannot be read: /);
  });

  test('reports a time-out with attempts and time', async (t) => {
    const server = await udpServer(t, () => []);
    const [a] = await network.ask(server, questions.slice(0, 1), { ...terms, timeoutMs: 50 });
    assert.equal(a!.failure, 'no reply after 2 tries of 50 ms');
  });

  test('TCP uses one connection for all, and reports one that is closed early', async (t) => {
    let isMute = false;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        if (isMute) return void socket.destroy();
        const bytes = Buffer.from(chunk);
        for (let at = 0; at < bytes.length; at += 2 + bytes.readUInt16BE(at))
          bytes[at + 4]! |= 0x80;
        socket.write(bytes);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const at = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    const good = await network.ask(at, questions, { ...terms, protocol: 'tcp', timeoutMs: 3000 });
    assert.deepEqual(
      good.map(({ failure, sent }) => [failure, sent]),
      [
        [null, 1],
        [null, 1],
      ],
    );
    isMute = true;
    const [bad] = await network.ask(at, questions, { ...terms, protocol: 'tcp', timeoutMs: 3000 });
    assert.match(bad!.failure!, /closed the connection|connection reset/);
  });

  test('over TCP, endless messages that answer nothing are not read until the last moment', async (t) => {
    let sent = 0;
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      const stray = Buffer.alloc(2 + 1799, 7);
      const more = (): void => {
        while (!socket.destroyed && ++sent < 100_000 && socket.write(stray));
      };
      socket.once('data', more);
      socket.on('drain', more);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    const at = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    const [asked] = await network.ask(at, questions, {
      ...terms,
      protocol: 'tcp',
      timeoutMs: 60_000,
    });
    assert.match(asked!.failure!, /^127\.0\.0\.1:\d+ sent 65 messages that match no query$/);
    assert.ok(sent < 20_000, `${sent} messages sent`);
  });
});
