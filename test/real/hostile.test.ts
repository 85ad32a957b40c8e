import assert from 'node:assert/strict';
import { createSocket, type Socket as Udp } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { mutate } from '../fuzz/mutate.ts';
import { hostilePackets, rcodeOf } from '../kit/hostile-packets.ts';
import { framed, queryBytes, StreamClient, UdpClient } from '../kit/loopback.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const corpusDirectory = join(import.meta.dirname, '../fuzz/corpus');
const read = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(join(corpusDirectory, name)));
const corpus = readdirSync(corpusDirectory).map(read);
const queries = [
  ...readdirSync(corpusDirectory)
    .filter((name) => name.startsWith('query'))
    .map(read),
  queryBytes('a.test', 7, 1232),
];

const directives = `  errors
  cache 30
  hosts {
    10.1.2.3 a.test
  }
  template ANY ANY random.test {
    rcode NXDOMAIN
    authority "random.test. 60 IN SOA ns.random.test. h.random.test. 1 60 60 60 60"
  }`;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// Test both transports, because the plain one should treat datagrams in the same way as the batched one.
for (const transport of ['batched', 'plain'] as const) {
  describe(`hostile input over real sockets, ${transport} UDP`, () => {
    let server: ServeProcess;
    let client: UdpClient;
    before(async () => {
      server = await serveProcess(directives, { words: ['-transport', transport] });
      client = await UdpClient.open();
    });
    after(async () => {
      client.close();
      await server.stop();
    });

    /** Checks that the server still answers over both protocols. */
    async function alive(): Promise<void> {
      const own = await UdpClient.open();
      let reply: Buffer | null = null;
      // A burst may have filled the socket's queue, so retry like a stub resolver.
      for (let attempt = 0; attempt < 5 && reply === null; attempt++) {
        own.send(queryBytes('a.test', 0x77aa), server.port);
        reply = (await own.next(1000))?.bytes ?? null;
      }
      own.close();
      assert.equal(reply?.readUInt16BE(0), 0x77aa);
      assert.equal(rcodeOf(reply!), 'NOERROR');
      const stream = await StreamClient.open(server.port);
      stream.send(queryBytes('a.test', 0x77ab));
      assert.equal((await stream.next())?.readUInt16BE(6), 1);
      stream.close();
    }

    test('each kind of broken query gets its result code or silence, and the next honest one its answer', async () => {
      const wrong: string[] = [];
      for (const { what, bytes, expected } of hostilePackets) {
        const own = await UdpClient.open();
        own.send(bytes, server.port);
        // The valid query after it shows when a reply to the broken one would have arrived.
        own.send(queryBytes('a.test', 0x4711), server.port);
        const replies: Buffer[] = [];
        while (!replies.some((reply) => reply.readUInt16BE(0) === 0x4711)) {
          const next = await own.next(3000);
          assert.ok(next !== null, `after ${what} nothing came`);
          replies.push(next.bytes);
        }
        const late = await own.next(10);
        if (late !== null) replies.push(late.bytes);
        own.close();
        const codes = replies.filter((reply) => reply.readUInt16BE(0) !== 0x4711).map(rcodeOf);
        const right =
          expected === 'whatever'
            ? codes.length <= 1
            : codes.join() === (expected === 'silence' ? '' : expected);
        if (!right) wrong.push(`${what}: ${codes.join() || 'silence'} instead of ${expected}`);
        for (const reply of replies)
          assert.ok(reply.length <= 512, `${what}: ${reply.length} bytes without EDNS`);
      }
      assert.deepEqual(wrong, []);
    });

    test('over TCP the same messages end no connection that they need not end, and the server answers', async () => {
      for (const { bytes, expected, what } of hostilePackets) {
        if (bytes.length > 65_000 || bytes.length === 0) continue;
        const stream = await StreamClient.open(server.port);
        stream.send(bytes);
        if (expected !== 'silence' && expected !== 'whatever') {
          const reply = await stream.next();
          // On a stream, the server should not refuse 5000 bytes.
          if (reply !== null && bytes.length !== 5000) assert.equal(rcodeOf(reply), expected, what);
        }
        stream.close();
      }
      await alive();
    });

    test('bursts of garbage and of damaged messages leave the server answering, its memory flat and its log quiet', async () => {
      const random = seededRandom(4242);
      const garbage = (): Uint8Array =>
        Uint8Array.from({ length: random.integer(600) }, () => random.integer(256));
      const volley = async (count: number): Promise<void> => {
        for (let i = 0; i < count; i++) {
          client.send(
            i % 4 === 0 ? garbage() : mutate(i % 4 === 1 ? corpus : queries, random),
            server.port,
          );
          if (i % 50 === 49) await pause(1);
        }
        await alive();
      };
      const memory = async (volleys: number): Promise<readonly number[]> => {
        const seen: number[] = [];
        for (let round = 0; round < volleys; round++) {
          await volley(6000);
          seen.push(server.child.residentMiB());
        }
        return seen;
      };
      await volley(6000);
      const logged = server.child.output().length;
      // An idle server has released memory and has to allocate some of it again.
      const [before, after] = [Math.max(...(await memory(3))), Math.min(...(await memory(3)))];
      assert.ok(after < before * 1.15 + 4, `${before} MiB at first, ${after} MiB later`);
      assert.ok(server.child.output().length - logged < 2000, 'nobody can fill the disk from afar');
      const served = await server.sum('coredns_dns_requests_total');
      assert.ok(served > 1000, `some of it were queries: ${served}`);
    });

    test('a name for each query fills no more than the cache', async () => {
      const flood = async (from: number, count: number): Promise<void> => {
        for (let i = 0; i < count; i++) {
          client.send(queryBytes(`n${from + i}.random.test`, i & 0xffff), server.port);
          if (i % 50 === 49) await pause(1);
        }
        await alive();
      };
      await flood(0, 15_000);
      const before = server.child.residentMiB();
      await flood(20_000, 15_000);
      const rss = server.child.residentMiB();
      assert.ok(
        rss < before * 1.15 + 4,
        `${before.toFixed(1)} MiB before, ${rss.toFixed(1)} MiB after`,
      );
    });

    test('none of it caused a panic', async () => {
      assert.equal(await server.sum('coredns_panics_total'), 0);
      assert.doesNotMatch(server.child.output(), /\s+at .*\.ts:\d+/);
    });
  });
}

describe('hostile streams', () => {
  let server: ServeProcess;
  before(async () => {
    server = await serveProcess(`${directives}\n  timeouts {\n    read 1s\n    idle 2s\n  }`);
  });
  after(() => server.stop());

  async function answers(): Promise<void> {
    const stream = await StreamClient.open(server.port);
    stream.send(queryBytes('a.test'));
    assert.equal((await stream.next(3000))?.readUInt16BE(6), 1);
    stream.close();
    const client = await UdpClient.open();
    assert.equal((await client.ask(queryBytes('a.test'), server.port))?.readUInt16BE(6), 1);
    client.close();
  }

  test('a client that sends a byte at a time is disconnected at its time-out, and others are served during that time', async () => {
    const message = framed(queryBytes('slow.test'));
    const slow = await Promise.all(
      Array.from({ length: 50 }, () => StreamClient.open(server.port)),
    );
    let sent = 0;
    const drip = setInterval(() => {
      for (const one of slow)
        if (one.socket.writable) one.socket.write(message.subarray(sent, sent + 1));
      sent++;
    }, 300);
    try {
      await pause(600);
      await answers();
      for (const one of slow) assert.ok(await one.ended(8000), 'cut off');
    } finally {
      clearInterval(drip);
      for (const one of slow) one.close();
    }
  });

  test('a connection on which nothing is ever sent is closed', async () => {
    const silent = await StreamClient.open(server.port);
    assert.ok(await silent.ended(8000));
    silent.close();
  });

  test('a half-closed connection gets its reply and then its end', async () => {
    const half = await StreamClient.open(server.port);
    half.socket.end(framed(queryBytes('a.test')));
    assert.equal((await half.next())?.readUInt16BE(6), 1);
    assert.ok(await half.ended(5000));
    half.close();
  });

  test('false lengths, garbage and abrupt ends harm no other client', async () => {
    const pieces = [
      Buffer.from([0, 0]),
      Buffer.from([0xff, 0xff]),
      Buffer.from([0xff]),
      Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(70_000, 0xff)]),
      Buffer.alloc(20_000, 0),
      Buffer.from('GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'),
      Buffer.from('160301020001', 'hex'),
    ];
    for (const piece of pieces) {
      const stream = await StreamClient.open(server.port);
      stream.socket.write(piece);
      await pause(5);
      stream.socket.resetAndDestroy();
    }
    await answers();
  });

  test('a thousand queries from a client that never reads are not buffered without limit', async () => {
    const before = server.child.residentMiB();
    const deaf: Socket[] = [];
    for (let i = 0; i < 20; i++) {
      const socket = connect({ port: server.port, host: '127.0.0.1' });
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      socket.pause();
      deaf.push(socket);
    }
    const many = Buffer.concat(
      Array.from({ length: 5000 }, (_, i) => framed(queryBytes('a.test', i))),
    );
    for (const socket of deaf) socket.write(many);
    await pause(1000);
    await answers();
    const rss = server.child.residentMiB();
    for (const socket of deaf) socket.destroy();
    assert.ok(
      rss < before * 1.4 + 8,
      `${before.toFixed(1)} MiB before, ${rss.toFixed(1)} MiB after`,
    );
  });

  test('messages that thousands of clients begin and never finish leave the process within the memory of its pod', async () => {
    const part = Buffer.alloc(30_000, 'a');
    part.writeUInt16BE(65_535);
    for (let round = 0; round < 3; round++) {
      const sockets: Socket[] = [];
      for (let i = 0; i < 3000; i++) {
        const socket = connect({ port: server.port, host: '127.0.0.1' });
        socket.on('error', () => undefined);
        sockets.push(socket);
        if (i % 100 === 99) await pause(10);
      }
      for (const socket of sockets) socket.write(part);
      await pause(500);
      await answers();
      for (const socket of sockets) socket.destroy();
      await pause(200);
    }
    const rss = server.child.residentMiB();
    assert.ok(rss < 150, `${rss.toFixed(1)} MiB`);
  });

  test('a thousand connections at once: the honest one is served, and all memory is released', async () => {
    const open = async (): Promise<Socket[]> => {
      const sockets: Socket[] = [];
      for (let i = 0; i < 1000; i++) {
        const socket = connect({ port: server.port, host: '127.0.0.1' });
        socket.on('error', () => undefined);
        sockets.push(socket);
        if (i % 100 === 99) await pause(10);
      }
      return sockets;
    };
    const rss: number[] = [];
    for (let round = 0; round < 3; round++) {
      const sockets = await open();
      await answers();
      for (const socket of sockets) socket.destroy();
      await pause(200);
      await answers();
      rss.push(server.child.residentMiB());
    }
    assert.ok(
      rss[2]! < rss[0]! * 1.2 + 4,
      `after each round: ${rss.map((one) => one.toFixed(1)).join(', ')} MiB`,
    );
    assert.equal(await server.sum('coredns_panics_total'), 0);
  });
});

describe('the first moments after startup', () => {
  test('a query before the server serves is answered late or not at all, but never with an error', async (t) => {
    const socket: Udp = createSocket('udp4');
    socket.on('error', () => undefined);
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    t.after(() => socket.close());
    const codes = new Map<string, number>();
    socket.on('message', (reply) =>
      codes.set(rcodeOf(reply), (codes.get(rcodeOf(reply)) ?? 0) + 1),
    );
    for (let round = 0; round < 3; round++) {
      let port = 0;
      const ask = setInterval(() => {
        if (port > 0)
          for (let i = 0; i < 5; i++) socket.send(queryBytes('a.test'), port, '127.0.0.1');
      }, 1);
      const server = await serveProcess(directives, { onPort: (chosen) => (port = chosen) });
      await pause(200);
      clearInterval(ask);
      await server.stop();
    }
    assert.deepEqual([...codes.keys()], ['NOERROR']);
  });
});
