import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { describe, test, type TestContext } from 'node:test';
import { testCertificate, testTls } from '../../../../test/kit/certificate.ts';
import {
  answerOne,
  listenerParts,
  queryBytes,
  replyWith,
  type TestParts,
} from '../../../../test/kit/loopback.ts';
import { MessageBuilder, MessageReader } from '../../base/protobuf.ts';
import { FLAG } from '../../wire/iana.ts';
import { silence } from '../../wire/reply.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { Serve } from '../listener.ts';
import { QUERY_PATH } from './dns-packet.ts';
import { grpcListener } from './grpc-listener.ts';
import { STATUS } from './grpc-failure.ts';

interface Running {
  readonly session: ClientHttp2Session;
  readonly parts: TestParts;
  readonly port: number;
}

async function start(
  t: TestContext,
  serve: Serve = answerOne,
  {
    secure = false,
    limits = {},
    window = 65_535,
  }: { secure?: boolean; limits?: Partial<ListenerLimits>; window?: number } = {},
): Promise<Running> {
  const parts = listenerParts(serve, { scheme: 'grpc' }, limits, secure ? testTls : null);
  const listener = grpcListener(parts);
  await listener.open();
  const scheme = secure ? 'https' : 'http';
  const session = connect(`${scheme}://127.0.0.1:${listener.port}`, {
    ca: testCertificate,
    settings: { initialWindowSize: window },
  });
  session.on('error', () => undefined);
  t.after(async () => {
    session.destroy();
    await listener.close(0);
  });
  await once(session, 'remoteSettings');
  return { session, parts, port: listener.port };
}

/** Frames a gRPC message. */
function framed(message: Uint8Array, compressed = 0, length = message.length): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = compressed;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

function packet(message: Uint8Array): Buffer {
  return new MessageBuilder().message(1, message).build();
}

interface Got {
  readonly http: number;
  /** -1 if there is none. */
  readonly status: number;
  readonly text: string;
  readonly body: Buffer;
}

async function call(
  session: ClientHttp2Session,
  body: Buffer | readonly Buffer[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Got> {
  const stream = session.request({
    ':method': 'POST',
    ':path': QUERY_PATH,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  stream.on('error', () => undefined);
  let fields: IncomingHttpHeaders = {};
  let http = 0;
  const chunks: Buffer[] = [];
  stream.on('response', (found) => {
    http = Number(found[':status']);
    fields = { ...fields, ...found };
  });
  stream.on('trailers', (found) => {
    fields = { ...fields, ...found };
  });
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  if (body instanceof Buffer) stream.end(body);
  else {
    for (const piece of body) {
      stream.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    stream.end();
  }
  await once(stream, 'close');
  const status = fields['grpc-status'] as string | undefined;
  return {
    http,
    status: status === undefined ? -1 : Number(status),
    text: String(fields['grpc-message'] ?? ''),
    body: Buffer.concat(chunks),
  };
}

/** Extracts the DNS message from a body. */
function messageIn(body: Buffer): Buffer {
  assert.equal(body[0], 0);
  assert.equal(body.readUInt32BE(1), body.length - 5);
  const reader = new MessageReader().over(body, 5);
  assert.ok(reader.next());
  assert.equal(reader.field, 1);
  return reader.bytes();
}

describe('DNS over gRPC', () => {
  for (const secure of [false, true]) {
    test(`a query gets its reply, ${secure ? 'with' : 'without'} TLS`, async (t) => {
      const { session, parts } = await start(t, answerOne, { secure });
      const got = await call(session, framed(packet(queryBytes('a.example.', 7))));
      assert.deepEqual([got.http, got.status], [200, STATUS.OK]);
      const message = messageIn(got.body);
      assert.equal(message.readUInt16BE(0), 7);
      assert.ok((message.readUInt16BE(2) & FLAG.QR) !== 0);
      assert.equal(message.readUInt16BE(6), 1);
      assert.equal(parts.counts.sent.value, 1);
    });
  }

  test('a message that arrives byte by byte, and unknown fields, do no harm', async (t) => {
    const { session } = await start(t);
    const known = packet(queryBytes('b.example.', 8));
    const whole = framed(
      Buffer.concat([new MessageBuilder().number(9, 5).bytes(10, 'x').build(), known]),
    );
    const got = await call(
      session,
      [...whole].map((byte) => Buffer.of(byte)),
    );
    assert.equal(got.status, STATUS.OK);
    assert.equal(messageIn(got.body).readUInt16BE(0), 8);
  });

  test('replies of every length arrive whole, through windows of any size', async (t) => {
    const counts = [1, 4, 7, 8, 1000, 1020, 1022, 1023, 4090];
    let next = 0;
    const { session } = await start(t, (query) => replyWith(query, counts[next++]!), {
      window: 100,
    });
    for (const count of counts) {
      const got = await call(session, framed(packet(queryBytes('c.example.', 9))));
      assert.equal(got.status, STATUS.OK);
      assert.equal(messageIn(got.body).readUInt16BE(6), count);
    }
  });

  test('replies that come later, and many at once, reach their calls', async (t) => {
    const { session } = await start(t, async (query) => {
      const kept = query.keep();
      await new Promise((resolve) => setTimeout(resolve, 1 + (kept.id % 7)));
      return replyWith(kept);
    });
    const ids = Array.from({ length: 200 }, (_, i) => i + 1);
    const all = await Promise.all(
      ids.map((id) => call(session, framed(packet(queryBytes('d.example.', id))))),
    );
    assert.deepEqual(
      all.map(({ body }) => messageIn(body).readUInt16BE(0)),
      ids,
    );
  });

  const query = queryBytes('e.example.');
  const wrong: readonly (readonly [string, Buffer, Partial<Got>, Record<string, string>?])[] = [
    ['a compressed message', framed(packet(query), 1), { status: STATUS.UNIMPLEMENTED }],
    ['half a message', framed(packet(query)).subarray(0, 20), { status: STATUS.INTERNAL }],
    ['half a prefix', Buffer.of(0, 0, 0), { status: STATUS.INTERNAL }],
    [
      'two messages',
      Buffer.concat([framed(packet(query)), framed(packet(query))]),
      { status: STATUS.INTERNAL },
    ],
    ['a length that lies', framed(packet(query), 0, 0xffff_ffff), { status: STATUS.INTERNAL }],
    ['a kind of prefix that nobody knows', framed(packet(query), 7), { status: STATUS.INTERNAL }],
    ['no protocol buffer', framed(Buffer.of(0xff, 0xff)), { status: STATUS.INTERNAL }],
    ['a packet without a message', framed(Buffer.alloc(0)), { status: STATUS.UNKNOWN }],
    ['what is no DNS', framed(packet(Buffer.from('hello'))), { status: STATUS.UNKNOWN }],
    [
      'a message that is longer than any',
      framed(packet(Buffer.alloc(70_000))),
      { status: STATUS.RESOURCE_EXHAUSTED },
    ],
    [
      'another method',
      framed(packet(query)),
      { status: STATUS.UNIMPLEMENTED },
      { ':path': '/coredns.dns.DnsService/Watch' },
    ],
    ['another media type', framed(packet(query)), { http: 415 }, { 'content-type': 'text/plain' }],
    [
      'messages that are no protocol buffers',
      framed(packet(query)),
      { http: 415 },
      { 'content-type': 'application/grpc+json' },
    ],
    ['another HTTP method', Buffer.alloc(0), { http: 405 }, { ':method': 'PUT' }],
  ];
  for (const [what, body, expected, headers] of wrong) {
    test(`${what} is refused with a status, and the connection continues`, async (t) => {
      const { session } = await start(t);
      const got = await call(session, body, headers);
      const { http = 200, status = -1 } = expected;
      assert.deepEqual([got.http, got.status], [http, status], got.text);
      if (status > 0) assert.notEqual(got.text, '');
      const after = await call(session, framed(packet(query)));
      assert.equal(after.status, STATUS.OK);
    });
  }

  test('a query without a reply ends with a status', async (t) => {
    const { session } = await start(t, () => silence);
    const got = await call(session, framed(packet(query)));
    assert.equal(got.status, STATUS.UNAVAILABLE);
  });

  test('content types with parameters are accepted', async (t) => {
    const { session } = await start(t);
    for (const type of ['application/grpc+proto', 'application/grpc;x=1'])
      assert.equal(
        (await call(session, framed(packet(query)), { 'content-type': type })).status,
        STATUS.OK,
      );
  });

  test('streams beyond the limit are refused, and the others get their replies', async (t) => {
    let held = 0;
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { session } = await start(
      t,
      async (asked) => {
        const kept = asked.keep();
        if (++held === 10) setTimeout(release, 100);
        await until;
        return replyWith(kept);
      },
      { limits: { streams: 10 } },
    );
    assert.equal(session.remoteSettings.maxConcurrentStreams, 10);
    const all = await Promise.all(
      Array.from({ length: 1000 }, (_, i) => call(session, framed(packet(queryBytes('f.', i))))),
    );
    // Node's client respects the server's limit, so all calls are eventually served, ten at a time.
    assert.equal(all.filter(({ status }) => status === STATUS.OK).length, 1000);
  });

  test('a client that opens streams and reads nothing is disconnected, and holds little memory', async (t) => {
    const { session, parts } = await start(t, (asked) => replyWith(asked, 4000), {
      window: 0,
      limits: { writeTimeoutMs: 300, heldBytes: 1024 * 1024, streams: 250 },
    });
    const closed = once(session, 'close');
    for (let i = 0; i < 250; i++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': QUERY_PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      stream.on('error', () => undefined);
      stream.end(framed(packet(queryBytes('g.example.', i))));
    }
    await closed;
    assert.equal(parts.counts.connections.value, 0);
    assert.ok(parts.counts.evicted.value + parts.counts.timedOut.value >= 1);
  });
});
