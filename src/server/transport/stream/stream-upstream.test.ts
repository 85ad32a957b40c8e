import assert from 'node:assert/strict';
import { once } from 'node:events';
import type {
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
  Settings,
} from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';

import { testCertificate, testKey, testTls } from '../../../../test/kit/certificate.ts';
import { answerOne, framed, listenerParts, queryBytes } from '../../../../test/kit/loopback.ts';
import {
  readableCounters,
  upstreamParts,
  type ReadableCounters,
} from '../../../../test/kit/upstream.ts';
import { systemClock } from '../../base/clock.ts';
import { secureRandom } from '../../base/random.ts';
import { Query } from '../query.ts';
import { httpsListener } from '../https/https.ts';
import type { Serve } from '../listener.ts';
import type { StreamListener } from './stream-listener.ts';
import {
  ask as askUpstream,
  type ExchangeReply,
  type Upstream,
  type UpstreamParts,
} from '../upstream-address.ts';
import { UpstreamExchange } from '../upstream/upstream-exchange.ts';
import type { Protocol } from '../../wire/transports.ts';
import { systemNetwork } from '../system-network.ts';
import { tcpListener, tlsListener } from './tcp.ts';

function ask(name: string, id = 1): Query {
  const query = new Query();
  const bytes = queryBytes(name, id);
  assert.equal(query.read(bytes, 0, bytes.length), 'serve');
  return query;
}

function upstream(
  t: TestContext,
  proto: Protocol,
  port: number,
  parts: Partial<UpstreamParts> = {},
): { readonly up: Upstream; readonly counts: ReadableCounters['counts'] } {
  const network = systemNetwork({ clock: systemClock, random: secureRandom, transport: 'auto' });
  const serverName = proto === 'tcp' ? '' : 'dns.example';
  const authority = Buffer.from(testCertificate);
  const counters = readableCounters();
  const up = network.upstream(
    upstreamParts(proto, port, {
      address: { host: '127.0.0.1', port, serverName },
      tls: proto === 'tcp' ? null : { certificate: null, key: null, authority },
      ...parts,
      counters,
    }),
  );
  t.after(() => up.close());
  return { up, counts: counters.counts };
}

/** Returns the name in the reply's question. */
function nameOf({ bytes }: ExchangeReply): string {
  const read = new Query();
  const copy = bytes.slice();
  copy[2]! &= 0x7f;
  assert.equal(read.read(copy, 0, copy.length), 'serve');
  return read.name;
}

const exchange = (up: Upstream, query: Query, timeoutMs: number): Promise<ExchangeReply> =>
  askUpstream(up, query, timeoutMs, systemClock.now());

/** Starts a TCP server whose connections are handled by the script. */
async function server(t: TestContext, script: (socket: Socket) => void): Promise<Server> {
  const made = createServer(script);
  const sockets = new Set<Socket>();
  made.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  made.listen(0, '127.0.0.1');
  await once(made, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    made.close();
  });
  return made;
}

function portOf(made: Server): number {
  const address = made.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

/** Records the position of its reply's bytes. */
class NotingExchange extends UpstreamExchange {
  bytes: Uint8Array | null = null;
  done: () => void = () => {};

  override replied(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.done();
  }

  override failed(error: Error): void {
    throw error;
  }
}

/** Turns a framed query into a framed reply. */
function reply(framedQuery: Buffer): Buffer {
  const bytes = Buffer.from(framedQuery);
  bytes[4]! |= 0x80;
  return bytes;
}

describe('TCP upstream', () => {
  test('a connection is reused, and counted once', async (t) => {
    const listener = tcpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    const { up, counts } = upstream(t, 'tcp', listener.port);
    const first = await exchange(up, ask('a.example.', 77), 2000);
    const second = await exchange(up, ask('b.example.', 78), 2000);
    assert.equal(nameOf(first), 'a.example.');
    assert.equal(first.reused, false);
    assert.equal(second.reused, true);
    assert.equal(listener.counters.accepted.value, 1);
    assert.equal(counts.sockets, 1);
  });

  for (const size of [40, 60_000])
    test(`the memory of a ${size}-byte reply is freed as soon as it has been read`, async (t) => {
      const made = await server(t, (socket) => {
        socket.on('data', (bytes: Buffer) => {
          const whole = Buffer.concat([reply(bytes), Buffer.alloc(size)]);
          whole.writeUInt16BE(whole.length - 2, 0);
          socket.write(whole.subarray(0, size / 2));
          setTimeout(() => socket.write(whole.subarray(size / 2)), 20);
        });
      });
      const { up } = upstream(t, 'tcp', portOf(made));
      const asked = new NotingExchange();
      asked.query = ask('a.example.', 79);
      await new Promise<void>((resolve) => {
        asked.done = resolve;
        up.start(asked, 2000, systemClock.now());
      });
      assert.equal(asked.bytes?.length, 0);
    });

  test('a few simultaneous queries have their own connections, many share them', async (t) => {
    const listener = tcpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    const { up } = upstream(t, 'tcp', listener.port, { maxIdle: 3 });
    await Promise.all(Array.from({ length: 20 }, (_, i) => exchange(up, ask(`n${i}.`), 2000)));
    assert.equal(listener.counters.accepted.value, 8);
    for (let i = 0; i < 100 && listener.counters.connections.value > 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(listener.counters.connections.value, 3, 'no more are kept than maxIdle');
  });

  test('an idle connection that the upstream closed is replaced silently', async (t) => {
    let connections = 0;
    const made = await server(t, (socket) => {
      connections++;
      socket.once('data', (bytes: Buffer) => {
        socket.write(reply(bytes));
        // The second query on this connection gets a reset instead of a reply.
        socket.once('data', () => socket.resetAndDestroy());
      });
    });
    const { up } = upstream(t, 'tcp', portOf(made));
    for (let i = 0; i < 3; i++) await exchange(up, ask('a.'), 2000);
    assert.equal(connections, 3);
  });

  test('a fresh connection that is closed without a reply is a failure', async (t) => {
    const made = await server(t, (socket) => socket.once('data', () => socket.end()));
    const { up } = upstream(t, 'tcp', portOf(made));
    await assert.rejects(exchange(up, ask('a.'), 2000), { failure: 'closed' });
  });

  test('a reply in pieces, after one that does not match, is accepted', async (t) => {
    const made = await server(t, (socket) =>
      socket.on('data', (bytes: Buffer) => {
        const wrong = reply(bytes);
        wrong[2]! ^= 0xff;
        const all = Buffer.concat([wrong, reply(bytes)]);
        let at = 0;
        const drip = setInterval(() => {
          socket.write(all.subarray(at, at + 7));
          at += 7;
          if (at >= all.length) clearInterval(drip);
        }, 1);
      }),
    );
    const { up } = upstream(t, 'tcp', portOf(made));
    const got = await exchange(up, ask('pieces.example.', 5), 2000);
    assert.equal(nameOf(got), 'pieces.example.');
  });

  for (const [what, flood] of [
    ['frames without a message', Buffer.alloc(60_000)],
    ['replies with ids of their own', framed(queryBytes('x.', 0xbeef))],
  ] as const) {
    test(`a peer that sends endless ${what} loses its connection`, async (t) => {
      let closed = 0;
      const made = await server(t, (socket) => {
        socket.on('error', () => undefined);
        const more = setInterval(() => socket.write(flood), 1);
        socket.on('close', () => {
          clearInterval(more);
          closed++;
        });
      });
      const { port } = made.address() as { port: number };
      const { up, counts } = upstream(t, 'tcp', port);
      await assert.rejects(exchange(up, ask('a.'), 2000), /replies that match no query/);
      while (closed === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      assert.ok(counts.strays < 200, `${counts.strays} strays`);
    });
  }

  test('silence is a timeout, a closed port refused, a dead host unreachable or timed out', async (t) => {
    const made = await server(t, () => {});
    const port = portOf(made);
    const { up } = upstream(t, 'tcp', port);
    await assert.rejects(exchange(up, ask('a.'), 60), {
      failure: 'timeout',
      message: new RegExp(`^read tcp 127\\.0\\.0\\.1:\\d+->127\\.0\\.0\\.1:${port}: i/o timeout$`),
    });
    const closed = await server(t, () => {});
    const gone = portOf(closed);
    await new Promise<void>((resolve) => closed.close(() => resolve()));
    await assert.rejects(exchange(upstream(t, 'tcp', gone).up, ask('a.'), 2000), {
      failure: 'refused',
      message: `dial tcp 127.0.0.1:${gone}: connect: connection refused`,
    });
  });

  test('connections expire, and are not used beyond their maximum age', async (t) => {
    const listener = tcpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    const young = upstream(t, 'tcp', listener.port, { maxAgeMs: 40 }).up;
    await exchange(young, ask('a.'), 2000);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal((await exchange(young, ask('a.'), 2000)).reused, false);
    const { up, counts } = upstream(t, 'tcp', listener.port, { expireMs: 40 });
    await exchange(up, ask('a.'), 2000);
    for (let i = 0; i < 100 && counts.sockets > 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(counts.sockets, 0);
  });

  test('close fails waiting queries', async (t) => {
    const made = await server(t, () => {});
    const { up } = upstream(t, 'tcp', portOf(made));
    const waiting = exchange(up, ask('a.'), 5000);
    setTimeout(() => up.close(), 20);
    await assert.rejects(waiting, { failure: 'closed' });
    await assert.rejects(exchange(up, ask('a.'), 5000), { failure: 'local' });
  });
});

describe('TLS upstream', () => {
  async function listening(t: TestContext): Promise<StreamListener> {
    const listener = tlsListener(listenerParts(answerOne, { scheme: 'tls' }, {}, testTls));
    await listener.open();
    t.after(() => listener.close(0));
    return listener;
  }

  test('queries are sent encrypted, over one connection', async (t) => {
    const listener = await listening(t);
    const { up } = upstream(t, 'tls', listener.port);
    assert.equal(nameOf(await exchange(up, ask('a.example.', 9), 2000)), 'a.example.');
    assert.equal((await exchange(up, ask('a.example.', 10), 2000)).reused, true);
    assert.equal(listener.counters.accepted.value, 1);
  });

  test('a certificate for another name is refused', async (t) => {
    const listener = await listening(t);
    const { up } = upstream(t, 'tls', listener.port, {
      address: { host: '127.0.0.1', port: listener.port, serverName: 'other.example' },
    });
    await assert.rejects(exchange(up, ask('a.'), 2000), { failure: 'tls' });
  });

  test('an unknown CA is refused', async (t) => {
    const listener = await listening(t);
    const { up } = upstream(t, 'tls', listener.port, { tls: null });
    await assert.rejects(exchange(up, ask('a.'), 2000), { failure: 'tls' });
  });

  test('a listener that does not use TLS fails the query, not the program', async (t) => {
    const listener = tcpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    const { up } = upstream(t, 'tls', listener.port);
    await assert.rejects(exchange(up, ask('a.'), 300), { name: 'ExchangeError' });
  });

  test('a client that does not finish the handshake is disconnected and does not delay closing', async (t) => {
    const slow = { readTimeoutMs: 60_000 };
    const listener = tlsListener(listenerParts(answerOne, { scheme: 'tls' }, slow, testTls));
    await listener.open();
    const { connect } = await import('node:net');
    const socket = connect(listener.port, '127.0.0.1');
    socket.on('error', () => {});
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    socket.write(framed(queryBytes('plain.')).subarray(0, 3));
    await listener.close(20);
  });

  test('a key that does not match the certificate is a Problem', () => {
    const parts = listenerParts(answerOne, { scheme: 'tls' }, {}, { ...testTls, key: 'nonsense' });
    assert.throws(() => tlsListener(parts), { code: 'tls-certificate' });
    assert.throws(() => tlsListener(listenerParts(answerOne, { scheme: 'tls' })), {
      code: 'tls-missing',
    });
  });
});

describe('HTTPS upstream', () => {
  for (const httpMethod of ['POST', 'GET'] as const) {
    test(`queries are sent as ${httpMethod} with id 0, many on one connection`, async (t) => {
      const ids = new Set<number>();
      const listener = httpsListener(
        listenerParts(
          (query) => {
            ids.add(query.id);
            return answerOne(query);
          },
          { scheme: 'https' },
          {},
          testTls,
        ),
      );
      await listener.open();
      t.after(() => listener.close(0));
      const { up } = upstream(t, 'https', listener.port, { httpMethod });
      const got = await Promise.all(
        Array.from({ length: 30 }, (_, i) => exchange(up, ask(`n${i}.`, i), 2000)),
      );
      assert.deepEqual(
        got.map(nameOf),
        got.map((_, i) => `n${i}.`),
      );
      assert.deepEqual([...ids], [0]);
      assert.equal(listener.counters.accepted.value, 1);
      assert.equal((await exchange(up, ask('again.'), 2000)).reused, true);
    });
  }

  /** Starts an HTTP/2 server from the runtime's library, whose streams are handled by the script. */
  async function http2Server(
    t: TestContext,
    onStream: (stream: ServerHttp2Stream, query: Buffer) => void,
    settings: Settings = {},
  ): Promise<number> {
    const { createSecureServer } = await import('node:http2');
    const made = createSecureServer({ cert: testCertificate, key: testKey, settings });
    const sessions = new Set<ServerHttp2Session>();
    made.on('session', (session) => sessions.add(session));
    made.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      const chunks: Buffer[] = [];
      const path = String(headers[':path']);
      stream.on('error', () => {});
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () =>
        onStream(
          stream,
          headers[':method'] === 'GET'
            ? Buffer.from(path.slice(path.indexOf('=') + 1), 'base64url')
            : Buffer.concat(chunks),
        ),
      );
    });
    made.listen(0, '127.0.0.1');
    await once(made, 'listening');
    t.after(() => {
      for (const session of sessions) session.destroy();
      made.close();
    });
    const address = made.address();
    assert.ok(address !== null && typeof address === 'object');
    return address.port;
  }

  const asReply = (query: Buffer): Buffer => {
    const bytes = Buffer.from(query);
    bytes[2]! |= 0x80;
    return bytes;
  };

  test("queries beyond the server's stream limit wait for their turn", async (t) => {
    let open = 0;
    let most = 0;
    const port = await http2Server(
      t,
      (stream, query) => {
        most = Math.max(most, ++open);
        setTimeout(() => {
          open--;
          stream.respond({ ':status': 200, 'content-type': 'application/dns-message' });
          stream.end(asReply(query));
        }, 5);
      },
      { maxConcurrentStreams: 4 },
    );
    const { up } = upstream(t, 'https', port);
    await exchange(up, ask('first.'), 2000);
    const names = Array.from({ length: 60 }, (_, i) => `n${i}.example.`);
    const got = await Promise.all(names.map((name) => exchange(up, ask(name), 4000)));
    assert.deepEqual(got.map(nameOf), names);
    assert.ok(most <= 4, `${most} streams`);
  });

  test('bodies in many pieces are joined, and longer ones than allowed are refused', async (t) => {
    const port = await http2Server(t, (stream, query) => {
      stream.respond({ ':status': 200 });
      if (query[13] === 'l'.charCodeAt(0)) {
        for (let i = 0; i < 20; i++) stream.write(Buffer.alloc(5000));
        return void stream.end();
      }
      const bytes = asReply(query);
      for (let at = 0; at < bytes.length; at += 3) stream.write(bytes.subarray(at, at + 3));
      stream.end();
    });
    for (const httpMethod of ['POST', 'GET'] as const) {
      const { up } = upstream(t, 'https', port, { httpMethod });
      assert.equal(nameOf(await exchange(up, ask('pieces.'), 2000)), 'pieces.');
      await assert.rejects(exchange(up, ask('long.'), 2000), { message: /the body is too long$/ });
      assert.equal(nameOf(await exchange(up, ask('after.'), 2000)), 'after.');
    }
  });

  test('an error status, a reset stream and silence affect only one query', async (t) => {
    const port = await http2Server(t, (stream, query) => {
      switch (String.fromCharCode(query[13]!)) {
        case 'e':
          stream.respond({ ':status': 503 });
          return void stream.end('no');
        case 'n':
          return stream.respond({ ':status': 429 }, { endStream: true });
        case 'r':
          return stream.close(2);
        case 's':
          return;
        default:
          stream.respond({ ':status': 200 });
          stream.end(asReply(query));
      }
    });
    const { up, counts } = upstream(t, 'https', port);
    const good = (): Promise<ExchangeReply> => exchange(up, ask('good.'), 2000);
    const url = `Post "https://dns.example:${port}/dns-query"`;
    await good();
    const silent = exchange(up, ask('silent.'), 200);
    const late = assert.rejects(silent, {
      failure: 'timeout',
      message: new RegExp(`^${url}: context deadline exceeded`),
    });
    await assert.rejects(exchange(up, ask('error.'), 2000), {
      failure: 'http',
      message: `${url}: HTTP status 503`,
    });
    await assert.rejects(exchange(up, ask('nothing.'), 2000), {
      message: `${url}: HTTP status 429`,
    });
    await assert.rejects(exchange(up, ask('reset.'), 2000), {
      message: /stream error: stream ID \d+; code 2$/,
    });
    await good();
    await late;
    assert.equal((await good()).reused, true);
    assert.deepEqual([counts.timeouts, counts.sockets], [1, 1]);
  });

  test('a server that closes the connection gracefully loses no query', async (t) => {
    let asked = 0;
    const port = await http2Server(t, (stream, query) => {
      if (++asked === 5) stream.session?.close();
      stream.respond({ ':status': 200 });
      stream.end(asReply(query));
    });
    const { up } = upstream(t, 'https', port);
    for (let i = 0; i < 12; i++) await exchange(up, ask(`n${i}.`), 2000);
    await Promise.all(Array.from({ length: 20 }, (_, i) => exchange(up, ask(`m${i}.`), 2000)));
  });

  test('a server that requests endless answers and reads none loses its connection', async (t) => {
    const { createServer: createTls } = await import('node:tls');
    const ping = Buffer.from('0000080600000000000102030405060708', 'hex');
    const pings = Buffer.concat(Array.from({ length: 4000 }, () => ping));
    let closed = 0;
    const made = createTls(
      { cert: testCertificate, key: testKey, ALPNProtocols: ['h2'] },
      (socket) => {
        socket.pause();
        socket.on('error', () => undefined);
        socket.write(Buffer.from('000000040000000000', 'hex'));
        const more = setInterval(() => socket.write(pings), 1);
        socket.on('close', () => {
          clearInterval(more);
          closed++;
        });
        t.after(() => socket.destroy());
      },
    );
    made.listen(0, '127.0.0.1');
    await once(made, 'listening');
    t.after(() => made.close());
    const { up } = upstream(t, 'https', portOf(made));
    await assert.rejects(
      exchange(up, ask('a.'), 20_000),
      /it is flooding the connection with empty frames/,
    );
    while (closed === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test('a server that supports only HTTP/1.1 gets HTTP/1.1', async (t) => {
    const { createServer: createHttps } = await import('node:https');
    const seen: string[] = [];
    const made = createHttps({ cert: testCertificate, key: testKey }, (request, response) => {
      seen.push(`${request.httpVersion} ${request.method} ${request.headers.host}`);
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        body[2]! |= 0x80;
        response.setHeader('content-type', 'application/dns-message');
        response.end(body);
      });
    });
    made.listen(0, '127.0.0.1');
    await once(made, 'listening');
    t.after(() => made.closeAllConnections());
    t.after(() => made.close());
    const port = portOf(made);
    const { up } = upstream(t, 'https', port);
    await exchange(up, ask('a.example.', 3), 2000);
    await exchange(up, ask('b.example.', 4), 2000);
    assert.deepEqual(seen, Array(2).fill(`1.1 POST dns.example:${port}`));
  });

  test('a server that supports only HTTP/1.1 gets no more connections than allowed', async (t) => {
    const { createServer: createHttps } = await import('node:https');
    let open = 0;
    let connections = 0;
    const made = createHttps({ cert: testCertificate, key: testKey }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = Buffer.concat(chunks);
        body[2]! |= 0x80;
        setTimeout(() => response.end(body), 20);
      });
    });
    made.on('secureConnection', (socket) => {
      connections = Math.max(connections, ++open);
      socket.on('close', () => open--);
    });
    made.listen(0, '127.0.0.1');
    await once(made, 'listening');
    t.after(() => made.closeAllConnections());
    t.after(() => made.close());
    const { up, counts } = upstream(t, 'https', portOf(made), { maxConnections: 3 });
    await exchange(up, ask('a.example.'), 5000);
    await Promise.all(Array.from({ length: 30 }, (_, i) => exchange(up, ask(`n${i}.`), 5000)));
    // The first one only detects the HTTP version.
    assert.ok(connections <= 4, `${connections} connections`);
    const rest = Array.from({ length: 5000 }, (_, i) => exchange(up, ask(`m${i}.`), 20));
    const ends = await Promise.allSettled(rest);
    const crowded = ends.filter(
      (end) => end.status === 'rejected' && /too many queries in flight/.test(String(end.reason)),
    );
    assert.equal(crowded.length, 5000 - 4096);
    assert.equal(counts.rejects, crowded.length);
  });

  test('an HTTP error, and a server that disconnects, are failures with a reason', async (t) => {
    const last = Promise.withResolvers<void>();
    const neverAnswer: Serve = ({ name }) => {
      if (name === 'last.') last.resolve();
      return new Promise(() => {});
    };
    const listener = httpsListener(listenerParts(neverAnswer, { scheme: 'https' }, {}, testTls));
    await listener.open();
    t.after(() => listener.close(0));
    const { up } = upstream(t, 'https', listener.port);
    const bad = ask('x.');
    bad.bytes[5] = 2;
    await assert.rejects(exchange(up, bad, 10_000), {
      failure: 'http',
      message: `Post "https://dns.example:${listener.port}/dns-query": HTTP status 400`,
    });
    await assert.rejects(exchange(up, ask('x.'), 60), { failure: 'timeout' });
    const waiting = assert.rejects(exchange(up, ask('last.'), 10_000), { name: 'ExchangeError' });
    await last.promise;
    void listener.close(10);
    await waiting;
  });
});
