import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Stream, type Settings } from 'node:http2';
import { createServer as createTcp } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { testCertificate, testKey, testTls } from '../../../../test/kit/certificate.ts';
import { answerOne, listenerParts, queryBytes } from '../../../../test/kit/loopback.ts';
import {
  readableCounters,
  upstreamParts,
  type ReadableCounters,
} from '../../../../test/kit/upstream.ts';
import { systemClock } from '../../base/clock.ts';
import { MessageBuilder } from '../../base/protobuf.ts';
import { secureRandom } from '../../base/random.ts';
import { Query } from '../query.ts';
import type { ListenerTls, Serve } from '../listener.ts';
import {
  ask as askUpstream,
  type ExchangeReply,
  type Upstream,
  type UpstreamParts,
} from '../upstream-address.ts';
import type { StreamListener } from '../stream/stream-listener.ts';
import { systemNetwork } from '../system-network.ts';
import { ExchangeError } from '../upstream/upstream-exchange.ts';
import { GrpcFailure, STATUS } from './grpc-failure.ts';
import { grpcListener } from './grpc-listener.ts';

function query(name = 'a.example.', id = 1): Query {
  const read = new Query();
  const bytes = queryBytes(name, id);
  assert.equal(read.read(bytes, 0, bytes.length), 'serve');
  return read.keep();
}

function upstream(
  t: TestContext,
  port: number,
  parts: Partial<UpstreamParts> = {},
): { readonly up: Upstream; readonly counts: ReadableCounters['counts'] } {
  const network = systemNetwork({ clock: systemClock, random: secureRandom, transport: 'auto' });
  const counters = readableCounters();
  const up = network.upstream(
    upstreamParts('grpc', port, {
      address: { host: '127.0.0.1', port, serverName: '' },
      tls: null,
      ...parts,
      counters,
    }),
  );
  t.after(() => up.close());
  return { up, counts: counters.counts };
}

function ask(up: Upstream, asked: Query = query(), timeoutMs = 5000): Promise<ExchangeReply> {
  return askUpstream(up, asked, timeoutMs, systemClock.now());
}

async function listener(
  t: TestContext,
  serve: Serve = answerOne,
  tls: ListenerTls | null = null,
  port = 0,
): Promise<StreamListener> {
  const made = grpcListener(listenerParts(serve, { scheme: 'grpc', port }, {}, tls));
  await made.open();
  t.after(() => made.close(0));
  return made;
}

/** Starts an HTTP/2 server that follows a script for each call. */
async function scripted(
  t: TestContext,
  script: (stream: ServerHttp2Stream, nth: number) => void,
  settings: Settings = {},
): Promise<{ readonly port: number; readonly server: Http2Server }> {
  const server = createServer({ settings });
  let nth = 0;
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    stream.resume();
    stream.on('end', () => script(stream, nth++));
  });
  server.on('sessionError', () => undefined);
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, server };
}

const ofGrpc = { ':status': 200, 'content-type': 'application/grpc' };

/** Answers with these bytes as the body, followed by this status. */
function answer(stream: ServerHttp2Stream, body: Buffer, status: string | null = '0'): void {
  stream.respond(ofGrpc, { waitForTrailers: true });
  stream.on('wantTrailers', () =>
    stream.sendTrailers(status === null ? { 'x-nothing': '' } : { 'grpc-status': status }),
  );
  stream.end(body);
}

function framed(message: Uint8Array, compressed = 0, length = message.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = compressed;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

/** A reply without records to `query()`. */
const reply = ((): Buffer => {
  const bytes = Buffer.from(queryBytes('a.example.', 0));
  bytes[2]! |= 0x80;
  return bytes;
})();
const packed = framed(new MessageBuilder().message(1, reply).build());

async function failureOf(promise: Promise<unknown>): Promise<ExchangeError> {
  const error = await promise.then(
    () => assert.fail('there is a reply'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof ExchangeError, String(error));
  return error;
}

describe('gRPC upstream', () => {
  test('many queries share one connection', async (t) => {
    const { port } = await listener(t);
    const { up, counts } = upstream(t, port);
    const replies = await Promise.all(
      Array.from({ length: 500 }, (_, i) => ask(up, query(`n${i}.example.`, i))),
    );
    assert.equal(replies.length, 500);
    assert.equal(counts.sockets, 1);
  });

  test('TLS: the certificate is verified, and a client certificate is presented', async (t) => {
    const strict: ListenerTls = {
      ...testTls,
      authority: testCertificate,
      clientAuth: 'require_and_verify',
    };
    const { port } = await listener(t, answerOne, strict);
    const authority = Buffer.from(testCertificate);
    const own = { certificate: Buffer.from(testCertificate), key: Buffer.from(testKey), authority };
    assert.ok(await ask(upstream(t, port, { tls: own }).up));
    const named = { host: '127.0.0.1', port, serverName: 'dns.example' };
    assert.ok(await ask(upstream(t, port, { tls: own, address: named }).up));
    const stranger = { ...named, serverName: 'other.example' };
    const wrong = await failureOf(ask(upstream(t, port, { tls: own, address: stranger }).up));
    assert.match(wrong.message, /code = Unavailable .*authentication handshake failed.*other/s);
    const none = { certificate: null, key: null, authority };
    await failureOf(ask(upstream(t, port, { tls: none }).up, query(), 2000));
    const distrustful = { certificate: null, key: null, authority: null };
    const unknown = await failureOf(ask(upstream(t, port, { tls: distrustful }).up));
    assert.match(unknown.message, /x509: certificate signed by unknown authority/);
  });

  test("a closed port is reported in the words of Go's gRPC client", async (t) => {
    const made = createTcp().listen(0, '127.0.0.1');
    await once(made, 'listening');
    const { port } = made.address() as { port: number };
    made.close();
    const { message, failure } = await failureOf(ask(upstream(t, port).up));
    assert.equal(failure, 'refused');
    assert.equal(
      message,
      `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:${port}: connect: connection refused"`,
    );
  });

  test("a silent server costs the query's remaining time and the connection", async (t) => {
    const { port } = await scripted(t, () => undefined);
    const { up, counts } = upstream(t, port);
    const { failure, message } = await failureOf(ask(up, query(), 300));
    assert.equal(failure, 'timeout');
    assert.equal(message, 'rpc error: code = DeadlineExceeded desc = context deadline exceeded');
    assert.equal(counts.timeouts, 1);
  });

  test('bytes other than HTTP/2 fail at once', async (t) => {
    const made = createTcp((socket) => {
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    }).listen(0, '127.0.0.1');
    await once(made, 'listening');
    t.after(() => made.close());
    const { port } = made.address() as { port: number };
    const error = await failureOf(ask(upstream(t, port).up));
    assert.match(error.message, /not HTTP\/2|closed/);
  });

  const wrong: readonly (readonly [string, (stream: ServerHttp2Stream) => void, RegExp])[] = [
    [
      'a status',
      (stream) =>
        stream.respond(
          { ...ofGrpc, 'grpc-status': '2', 'grpc-message': 'not%20now' },
          { endStream: true },
        ),
      /code = Unknown desc = not now/,
    ],
    ['a compressed reply', (stream) => answer(stream, framed(Buffer.of(1), 1)), /compressed/],
    [
      'a reply that is too long',
      (stream) => answer(stream, framed(Buffer.alloc(70_000))),
      /ResourceExhausted.*70000 bytes/,
    ],
    [
      'a length that lies',
      (stream) => answer(stream, framed(Buffer.of(1), 0, 0xffff_ffff)),
      /ResourceExhausted/,
    ],
    [
      'half a reply',
      (stream) => answer(stream, packed.subarray(0, 12)),
      /not a reply to the query/,
    ],
    ['no status', (stream) => answer(stream, packed, null), /without a status/],
    ['no reply', (stream) => answer(stream, Buffer.alloc(0)), /not a reply to the query/],
    [
      'a reply to another query',
      (stream) =>
        answer(stream, framed(new MessageBuilder().message(1, queryBytes('b.example.')).build())),
      /not a reply to the query/,
    ],
    [
      'no protocol buffer',
      (stream) => answer(stream, framed(Buffer.of(0xff, 0xff))),
      /Internal desc/,
    ],
    [
      'an HTTP error',
      (stream) => stream.respond({ ':status': 503 }, { endStream: true }),
      /HTTP status 503/,
    ],
    ['a stream that is reset', (stream) => stream.close(2), /HTTP\/2 error 2/],
  ];
  for (const [what, script, message] of wrong) {
    test(`${what} is a failure with its reason, and the next query is served`, async (t) => {
      const { port } = await scripted(t, (stream, nth) =>
        nth === 0 ? script(stream) : answer(stream, packed),
      );
      const { up } = upstream(t, port);
      assert.match((await failureOf(ask(up))).message, message);
      assert.ok(await ask(up));
    });
  }

  test('NOT_FOUND is distinct from other failures', async (t) => {
    const { port } = await scripted(t, (stream) =>
      stream.respond({ ...ofGrpc, 'grpc-status': '5' }, { endStream: true }),
    );
    const { cause } = await failureOf(ask(upstream(t, port).up));
    assert.ok(cause instanceof GrpcFailure);
    assert.equal(cause.code, STATUS.NOT_FOUND);
  });

  test('a server that accepts one call at a time gets one at a time', async (t) => {
    let open = 0;
    let most = 0;
    const { port } = await scripted(
      t,
      (stream) => {
        most = Math.max(most, ++open);
        setTimeout(() => {
          open--;
          answer(stream, packed);
        }, 5);
      },
      { maxConcurrentStreams: 1 },
    );
    const { up } = upstream(t, port);
    // The server's limit is unknown until its settings arrive.
    await ask(up);
    most = 0;
    await Promise.all(Array.from({ length: 30 }, () => ask(up)));
    assert.equal(most, 1);
  });

  test('a server that comes back is used again, and a query in between fails at once', async (t) => {
    const first = await listener(t);
    const { port } = first;
    const { up, counts } = upstream(t, port);
    await ask(up);
    await first.close(0);
    assert.equal((await failureOf(ask(up))).failure, 'refused');
    await listener(t, answerOne, null, port);
    assert.ok(await ask(up));
    assert.equal(counts.sockets, 1);
  });

  test('a connection that the server closes while idle costs no query', async (t) => {
    const { port, server } = await scripted(t, (stream) => answer(stream, packed));
    const sessions: { close(): void }[] = [];
    server.on('session', (session) => sessions.push(session));
    const { up } = upstream(t, port);
    for (let round = 0; round < 5; round++) {
      assert.ok(await ask(up));
      sessions.pop()?.close();
    }
  });

  test('queries above the in-flight limit fail at once', async (t) => {
    const { port } = await scripted(t, () => undefined);
    const { up, counts } = upstream(t, port, { inFlightMax: 10 });
    const asked = query();
    const all = await Promise.allSettled(Array.from({ length: 14 }, () => ask(up, asked, 1000)));
    const texts = all.map((one) => (one.status === 'rejected' ? String(one.reason) : ''));
    assert.equal(texts.filter((text) => text.includes('too many queries')).length, 4);
    assert.equal(counts.rejects, 4);
  });
});
