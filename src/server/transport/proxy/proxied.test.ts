import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { testCertificate, testTls } from '../../../../test/kit/certificate.ts';
import {
  framed,
  listenerParts,
  queryBytes,
  replyWith,
  StreamClient,
  UdpClient,
  type TestParts,
} from '../../../../test/kit/loopback.ts';
import { parseNet, printAddress } from '../../base/ip.ts';
import { batchedUdp } from '../../runtime/packet-loop.ts';
import type { Query } from '../query.ts';
import { httpsListener } from '../https/https.ts';
import type { Listener, MakeListener } from '../listener.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { ProxyPlan } from './proxy-policy.ts';
import { tcpListener, tlsListener } from '../stream/tcp.ts';
import { batchedUdpListener } from '../udp/udp-batch.ts';
import { plainUdpListener } from '../udp/udp-plain.ts';

const everybody: ProxyPlan = { allow: [], others: 'use', sessionMs: 0, sessions: 10 };
const nobody: ProxyPlan = { ...everybody, allow: [parseNet('10.9.0.0/16')!], others: 'ignore' };

interface Started {
  readonly listener: Listener;
  readonly parts: TestParts;
  /** Client and server of each query: `192.0.2.1:40000 > 10.0.0.1:53`. */
  readonly seen: string[];
}

async function start(
  t: TestContext,
  make: MakeListener,
  scheme: 'dns' | 'tls' | 'https',
  proxy: ProxyPlan,
  limits: Partial<ListenerLimits> = {},
): Promise<Started> {
  const seen: string[] = [];
  const serve = (query: Query) => {
    const { peer, peerAt, family, peerPort, local, localPort } = query;
    const from = printAddress(peer, peerAt, family === 4 ? 4 : 16);
    // The server refuses messages that are not queries, so that they are counted and limited.
    if (query.rejection === 0) seen.push(`${from}:${peerPort} > ${local}:${localPort}`);
    return replyWith(query);
  };
  const made = listenerParts(serve, { scheme }, limits, scheme === 'dns' ? null : testTls);
  const parts = { ...made, terms: { ...made.terms, proxy } };
  const listener = make(parts);
  await listener.open();
  t.after(() => listener.close(0));
  return { listener, parts, seen };
}

const text = Buffer.from('PROXY TCP4 192.0.2.1 10.0.0.1 40000 53\r\n');

function binary(kind: number, command = 1): Buffer {
  const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
  const addresses =
    kind >> 4 === 1
      ? Buffer.of(192, 0, 2, 1, 10, 0, 0, 1, 0x9c, 0x40, 0, 53)
      : Buffer.concat([Buffer.alloc(32, 0x20), Buffer.of(0x9c, 0x40, 0, 53)]);
  return Buffer.concat([
    signature,
    Buffer.of(0x20 | command, kind, 0, addresses.length),
    addresses,
  ]);
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

const NAMED = '192.0.2.1:40000 > 10.0.0.1:53';

describe('connections behind a proxy', () => {
  for (const [what, header] of [
    ['version 1', text],
    ['version 2', binary(0x11)],
  ] as const) {
    for (const step of [1, 7, 1000]) {
      test(`${what}: the client comes from the header, ${step} bytes at a time`, async (t) => {
        const { listener, parts, seen } = await start(t, tcpListener, 'dns', everybody);
        const client = new StreamClient(await open(listener.port));
        t.after(() => client.socket.destroy());
        const all = Buffer.concat([
          header,
          framed(queryBytes('a.', 1)),
          framed(queryBytes('b.', 2)),
        ]);
        for (let at = 0; at < all.length; at += step) {
          client.socket.write(all.subarray(at, at + step));
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        assert.equal((await client.next())?.readUInt16BE(0), 1);
        assert.equal((await client.next())?.readUInt16BE(0), 2);
        assert.deepEqual(seen, [NAMED, NAMED]);
        assert.equal(parts.counts.proxied.value, 1);
      });
    }
  }

  test('a client without a header keeps its own address', async (t) => {
    const { listener, parts, seen } = await start(t, tcpListener, 'dns', everybody);
    const client = new StreamClient(await open(listener.port));
    t.after(() => client.socket.destroy());
    client.socket.write(framed(queryBytes('a.')));
    assert.ok(await client.next());
    assert.match(seen[0]!, /^127\.0\.0\.1:\d+ > 127\.0\.0\.1:/);
    assert.equal(parts.counts.proxied.value, 0);
  });

  test("a proxy's health check keeps the proxy's own address", async (t) => {
    const { listener, seen } = await start(t, tcpListener, 'dns', everybody);
    const client = new StreamClient(await open(listener.port));
    t.after(() => client.socket.destroy());
    client.socket.write(Buffer.concat([binary(0x11, 0), framed(queryBytes('a.'))]));
    assert.ok(await client.next());
    assert.match(seen[0]!, /^127\.0\.0\.1:/);
  });

  test('a header from a client that may not send one is skipped, refused, or read as part of the message', async (t) => {
    const ignoring = await start(t, tcpListener, 'dns', nobody);
    const client = new StreamClient(await open(ignoring.listener.port));
    t.after(() => client.socket.destroy());
    client.socket.write(Buffer.concat([text, framed(queryBytes('a.'))]));
    assert.ok(await client.next());
    assert.match(ignoring.seen[0]!, /^127\.0\.0\.1:/);

    for (const others of ['reject', 'skip'] as const) {
      const { listener, parts, seen } = await start(t, tcpListener, 'dns', { ...nobody, others });
      const other = new StreamClient(await open(listener.port));
      t.after(() => other.socket.destroy());
      other.socket.write(Buffer.concat([text, framed(queryBytes('a.'))]));
      if (others === 'reject') {
        assert.ok(await other.ended());
        assert.equal(parts.counts.proxyRefused.value, 1);
      } else await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(seen, []);
      const plain = new StreamClient(await open(listener.port));
      t.after(() => plain.socket.destroy());
      plain.socket.write(framed(queryBytes('a.')));
      assert.ok(await plain.next());
    }
  });

  for (const [what, bytes] of [
    ['broken', Buffer.from('PROXY TCP4 nonsense\r\n')],
    ['endless', Buffer.from(`PROXY ${'x'.repeat(5000)}`)],
    ['for datagrams', binary(0x12)],
    ['longer than any', Buffer.concat([binary(0x11).subarray(0, 14), Buffer.of(0xff, 0xff)])],
  ] as const) {
    test(`a header that is ${what} ends the connection`, async (t) => {
      const { listener, parts } = await start(t, tcpListener, 'dns', everybody);
      const client = new StreamClient(await open(listener.port));
      t.after(() => client.socket.destroy());
      client.socket.write(bytes);
      assert.ok(await client.ended());
      assert.equal(parts.counts.proxyRefused.value, 1);
    });
  }

  test('endless headers are limited in time and number', async (t) => {
    const limits = { readTimeoutMs: 200, handshakes: 5 };
    const { listener, parts } = await start(t, tcpListener, 'dns', everybody, limits);
    const slow = await Promise.all(Array.from({ length: 20 }, () => open(listener.port)));
    for (const socket of slow) socket.write('PROXY TC');
    const ends = slow.map((socket) => {
      socket.resume();
      return once(socket, 'close');
    });
    t.after(() => slow.forEach((socket) => socket.destroy()));
    const client = new StreamClient(await open(listener.port));
    t.after(() => client.socket.destroy());
    client.socket.write(Buffer.concat([text, framed(queryBytes('a.'))]));
    assert.ok(await client.next());
    await Promise.all(ends);
    assert.ok(parts.counts.evicted.value >= 14, `${parts.counts.evicted.value}`);
    assert.ok(parts.counts.timedOut.value >= 1);
  });

  test('TLS begins after the header, and its client comes from the header', async (t) => {
    for (const later of [false, true]) {
      const { listener, seen } = await start(t, tlsListener, 'tls', everybody);
      const socket = await open(listener.port);
      socket.write(text);
      if (later) await new Promise((resolve) => setTimeout(resolve, 30));
      const secure = connectTls({ socket, ca: testCertificate, servername: 'dns.example' });
      await once(secure, 'secureConnect');
      const client = new StreamClient(secure);
      t.after(() => secure.destroy());
      secure.write(framed(queryBytes('a.')));
      assert.ok(await client.next());
      assert.deepEqual(seen, [NAMED]);
    }
  });

  test('HTTPS: every request has the client from the header', async (t) => {
    const { listener, seen } = await start(t, httpsListener, 'https', everybody);
    const socket = await open(listener.port);
    socket.write(binary(0x11));
    const session = connectHttp2('https://dns.example', {
      createConnection: () =>
        connectTls({
          socket,
          ca: testCertificate,
          servername: 'dns.example',
          ALPNProtocols: ['h2'],
        }),
    });
    t.after(() => session.destroy());
    const stream = session.request({ ':method': 'POST', ':path': '/dns-query' });
    stream.end(queryBytes('a.'));
    stream.resume();
    await once(stream, 'end');
    assert.deepEqual(seen, [NAMED]);
  });
});

const udp: readonly (readonly [string, MakeListener])[] = [
  ['plain', plainUdpListener],
  ...(batchedUdp().available ? ([['batched', batchedUdpListener]] as const) : []),
];

for (const [kind, make] of udp) {
  describe(`datagrams behind a proxy, ${kind}`, () => {
    async function ask(started: Started, bytes: Buffer, client: UdpClient): Promise<string | null> {
      const before = started.seen.length;
      client.send(bytes, started.listener.port);
      const reply = await client.next(300);
      assert.equal(started.seen.length - before, reply === null ? 0 : 1);
      return reply === null ? null : started.seen.at(-1)!.replace(/ > .*/, '');
    }

    const query = queryBytes('a.example.');

    test('the client of either family comes from the header, and the reply goes to the proxy', async (t) => {
      const started = await start(t, make, 'dns', everybody);
      const client = await UdpClient.open();
      t.after(() => client.close());
      const own = `127.0.0.1:${client.port}`;
      assert.equal(
        await ask(started, Buffer.concat([binary(0x12), query]), client),
        '192.0.2.1:40000',
      );
      assert.equal(
        await ask(started, Buffer.concat([binary(0x22), query]), client),
        `${Array.from({ length: 8 }, () => '2020').join(':')}:40000`,
      );
      assert.equal(await ask(started, query, client), own);
      assert.equal(await ask(started, Buffer.concat([binary(0x12, 0), query]), client), own);
      assert.equal(started.parts.counts.proxied.value, 2);
    });

    test('headers that are malformed, of version 1, for connections, or not allowed get no reply', async (t) => {
      const started = await start(t, make, 'dns', everybody);
      const client = await UdpClient.open();
      t.after(() => client.close());
      for (const header of [text, binary(0x11)])
        assert.equal(await ask(started, Buffer.concat([header, query]), client), null);
      assert.equal(await ask(started, binary(0x12).subarray(0, 20), client), null);
      assert.equal(started.parts.counts.proxyRefused.value, 3);
      assert.equal(await ask(started, binary(0x12), client), null);
      const strict = await start(t, make, 'dns', { ...nobody, others: 'reject' });
      assert.equal(await ask(strict, Buffer.concat([binary(0x12), query]), client), null);
      const ignoring = await start(t, make, 'dns', nobody);
      const own = `127.0.0.1:${client.port}`;
      assert.equal(await ask(ignoring, Buffer.concat([binary(0x12), query]), client), own);
    });

    test('a separate header applies to the datagrams after it, within limits of time and clients', async (t) => {
      const plan = { ...everybody, sessionMs: 400, sessions: 2 };
      const started = await start(t, make, 'dns', plan);
      const clients = await Promise.all([UdpClient.open(), UdpClient.open(), UdpClient.open()]);
      t.after(() => clients.forEach((client) => client.close()));
      const [one, two, three] = clients;
      assert.equal(await ask(started, binary(0x12), one), null);
      assert.equal(await ask(started, query, one), '192.0.2.1:40000');
      assert.equal(await ask(started, query, two), `127.0.0.1:${two.port}`);
      assert.equal(
        await ask(started, Buffer.concat([binary(0x12), query]), two),
        '192.0.2.1:40000',
      );
      assert.equal(
        await ask(started, Buffer.concat([binary(0x12), query]), three),
        '192.0.2.1:40000',
      );
      assert.equal(await ask(started, query, one), `127.0.0.1:${one.port}`);
      assert.equal(await ask(started, query, three), '192.0.2.1:40000');
      assert.equal(started.parts.counts.evicted.value, 1);
      await new Promise((resolve) => setTimeout(resolve, 600));
      assert.equal(await ask(started, query, three), `127.0.0.1:${three.port}`);
    });

    test('a reload enables and disables it', async (t) => {
      const started = await start(t, make, 'dns', everybody);
      const { listener, parts } = started;
      const client = await UdpClient.open();
      t.after(() => client.close());
      listener.adopt({ ...parts.terms, proxy: null });
      // The bytes are then treated as the client's own message, which is not a query.
      client.send(Buffer.concat([binary(0x12), query]), listener.port);
      await client.next(300);
      assert.deepEqual(started.seen, []);
      listener.adopt({ ...parts.terms, proxy: everybody });
      assert.equal(
        await ask(started, Buffer.concat([binary(0x12), query]), client),
        '192.0.2.1:40000',
      );
    });
  });
}
