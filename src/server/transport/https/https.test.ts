import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls } from 'node:tls';

import { testCertificate, testTls } from '../../../../test/kit/certificate.ts';
import {
  answerOne,
  closed,
  listenerParts,
  queryBytes,
  replyWith,
} from '../../../../test/kit/loopback.ts';
import { Collection } from '../../metrics/collection.ts';
import type { Registration } from '../../metrics/registration.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { failure, silence } from '../../wire/reply.ts';
import { httpsListener } from './https.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import { listenerCounters } from '../listener-counters.ts';
import type { Serve } from '../listener.ts';
import type { StreamListener } from '../stream/stream-listener.ts';

async function start(
  t: TestContext,
  serve: Serve,
  secure = true,
  limits: Partial<ListenerLimits> = {},
): Promise<StreamListener> {
  const listener = httpsListener(
    listenerParts(serve, { scheme: 'https' }, limits, secure ? testTls : null),
  );
  await listener.open();
  t.after(() => listener.close(0));
  return listener;
}

interface Got {
  readonly status: number;
  readonly type: string | undefined;
  readonly cache: string | undefined;
  readonly body: Buffer;
}

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly body?: Buffer;
}

async function overHttp2(session: ClientHttp2Session, asked: Asked): Promise<Got> {
  const stream = session.request({
    ':path': asked.path ?? '/dns-query',
    ':method': asked.method ?? 'POST',
    'content-type': 'application/dns-message',
  });
  stream.end(asked.body);
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [headers] = (await once(stream, 'response')) as [
    Record<string, string | number | undefined>,
  ];
  if (!stream.closed) await closed(stream);
  return {
    status: Number(headers[':status']),
    type: headers['content-type'] as string | undefined,
    cache: headers['cache-control'] as string | undefined,
    body: Buffer.concat(chunks),
  };
}

async function overHttp1(port: number, secure: boolean, asked: Asked): Promise<Got> {
  const options = {
    port,
    host: '127.0.0.1',
    path: asked.path ?? '/dns-query',
    method: asked.method ?? 'POST',
  };
  const sent = secure
    ? requestHttps({ ...options, ca: testCertificate, agent: false })
    : requestHttp({ ...options, agent: false });
  sent.end(asked.body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    type: response.headers['content-type'],
    cache: response.headers['cache-control'],
    body: Buffer.concat(chunks),
  };
}

function session(t: TestContext, port: number): ClientHttp2Session {
  const made = connectHttp2(`https://127.0.0.1:${port}`, { ca: testCertificate });
  made.on('error', () => {});
  t.after(() => made.destroy());
  return made;
}

const query = queryBytes('doh.example.', 321);
const get = (message: Buffer): Asked => ({
  method: 'GET',
  path: `/dns-query?dns=${message.toString('base64url')}`,
});

describe('DNS over HTTPS', () => {
  test("responses are counted by status, under CoreDNS's metric name", async (t) => {
    const registrations: Registration[] = [];
    const registry = new SharedRegistry((registration) => registrations.push(registration));
    const listener = httpsListener({
      ...listenerParts(answerOne, { scheme: 'https' }, {}, testTls),
      counters: listenerCounters(registry, 'https://:443'),
    });
    await listener.open();
    t.after(() => listener.close(0));
    const collection = new Collection();
    for (const asked of [{ body: query }, { path: '/' }, { body: query }]) {
      await overHttp2(session(t, listener.port), asked);
      await overHttp1(listener.port, true, asked);
    }
    for (const registration of registrations) collection.add('test', registration);
    const text = collection.print('text');
    assert.match(
      text,
      /^coredns_dns_https_responses_total\{server="https:\/\/:443",status="200"\} 4$/m,
    );
    assert.match(
      text,
      /^coredns_dns_https_responses_total\{server="https:\/\/:443",status="404"\} 2$/m,
    );
  });

  for (const [what, ask] of [
    ['HTTP/2', (t: TestContext, port: number, asked: Asked) => overHttp2(session(t, port), asked)],
    ['HTTP/1.1', (_: TestContext, port: number, asked: Asked) => overHttp1(port, true, asked)],
    [
      'plain HTTP without a certificate',
      (_: TestContext, port: number, asked: Asked) => overHttp1(port, false, asked),
    ],
  ] as const) {
    test(`POST and GET are answered over ${what}`, async (t) => {
      const { port } = await start(t, answerOne, !what.startsWith('plain'));
      for (const asked of [{ body: query }, get(query)]) {
        const got = await ask(t, port, asked);
        assert.equal(got.status, 200);
        assert.equal(got.type, 'application/dns-message');
        assert.equal(got.cache, 'max-age=30');
        assert.equal(got.body.readUInt16BE(0), 321);
        assert.equal(got.body.readUInt16BE(6), 1);
      }
    });
  }

  test('many requests on one connection are answered as they become ready', async (t) => {
    const { port } = await start(t, (asked) => {
      const kept = asked.keep();
      return new Promise((resolve) => setTimeout(() => resolve(replyWith(kept)), kept.id % 10));
    });
    const one = session(t, port);
    const got = await Promise.all(
      Array.from({ length: 100 }, (_, id) => overHttp2(one, { body: queryBytes('x.', id) })),
    );
    assert.deepEqual(
      got.map(({ body }) => body.readUInt16BE(0)),
      got.map((_, id) => id),
    );
  });

  test('another path is 404, a malformed query is 400, silence is 500', async (t) => {
    const { port } = await start(t, (asked) =>
      asked.name === 'mute.' ? silence : replyWith(asked),
    );
    const one = session(t, port);
    const status = async (asked: Asked): Promise<number> => (await overHttp2(one, asked)).status;
    assert.equal(await status({ path: '/', body: query }), 404);
    assert.equal(await status({ path: '/dns-query/', body: query }), 404);
    assert.equal(await status({ body: Buffer.from('garbage') }), 400);
    assert.equal(await status({ body: Buffer.alloc(0) }), 400);
    assert.equal(await status({ body: Buffer.alloc(70_000) }), 400);
    const twoQuestions = Buffer.from(query);
    twoQuestions[5] = 2;
    assert.equal(await status({ body: twoQuestions }), 400);
    assert.equal(await status({ method: 'GET', path: '/dns-query' }), 400);
    const encoded = query.toString('base64url');
    assert.equal(
      await status({ method: 'GET', path: `/dns-query?dns=${encoded}&dns=${encoded}` }),
      400,
    );
    assert.equal(await status({ method: 'GET', path: '/dns-query?dns=!!!!' }), 400);
    assert.equal(await status({ method: 'PUT', body: query }), 400);
    assert.equal(await status({ body: queryBytes('mute.') }), 500);
    assert.equal(await status({ body: query }), 200);
  });

  test('a failure may be cached for five seconds', async (t) => {
    const { port } = await start(t, () => failure(2, 'test'));
    const got = await overHttp2(session(t, port), { body: query });
    assert.equal(got.cache, 'max-age=5');
    assert.equal(got.body[3]! & 0x0f, 2);
  });

  test('replies are not limited to a datagram’s size', async (t) => {
    const { port } = await start(t, (asked) => replyWith(asked, 3000));
    const got = await overHttp2(session(t, port), { body: query });
    assert.equal(got.body.readUInt16BE(6), 3000);
  });

  test('a client that connects and sends nothing is disconnected', async (t) => {
    const { port } = await start(t, answerOne, true, { readTimeoutMs: 100, idleTimeoutMs: 100 });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    t.after(() => socket.destroy());
    await closed(socket);
  });

  test('a body that never ends is abandoned', async (t) => {
    const listener = await start(t, answerOne, true, { readTimeoutMs: 100 });
    const stream = session(t, listener.port).request({ ':path': '/dns-query', ':method': 'POST' });
    stream.on('error', () => {});
    stream.write(query.subarray(0, 5));
    await closed(stream);
    assert.ok(listener.counters.timedOut.value >= 1);
  });

  test('part of an abandoned body is not a query', async (t) => {
    const listener = await start(t, answerOne, true, { readTimeoutMs: 100 });
    const stream = session(t, listener.port).request({ ':path': '/dns-query', ':method': 'POST' });
    stream.on('error', () => {});
    stream.write(query);
    await closed(stream);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(listener.counters.received.value, 0);
  });

  test('a client that reads no reply and only sends PING is disconnected', async (t) => {
    const limits = { idleTimeoutMs: 150, writeTimeoutMs: 150 };
    const listener = await start(t, answerOne, true, limits);
    const made = connectHttp2(`https://127.0.0.1:${listener.port}`, {
      ca: testCertificate,
      settings: { initialWindowSize: 0 },
    });
    made.on('error', () => {});
    t.after(() => made.destroy());
    const gone = closed(made);
    await once(made, 'remoteSettings');
    const stream = made.request({ ':path': '/dns-query', ':method': 'POST' });
    stream.on('error', () => {});
    stream.end(query);
    const ping = setInterval(() => {
      if (!made.destroyed && !made.closed) made.ping(() => {});
    }, 20);
    t.after(() => clearInterval(ping));
    await gone;
    assert.ok(listener.counters.timedOut.value > 0);
  });

  test('bodies that never end are bounded over all connections', async (t) => {
    const listener = await start(t, answerOne, true, { readTimeoutMs: 60_000 });
    for (let n = 0; n < 3; n++) {
      const made = session(t, listener.port);
      await once(made, 'remoteSettings');
      for (let i = 0; i < 200; i++) {
        const stream = made.request({ ':path': '/dns-query', ':method': 'POST' });
        stream.on('error', () => {});
        stream.write(Buffer.alloc(60_000));
      }
    }
    while (listener.counters.evicted.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal((await overHttp2(session(t, listener.port), { body: query })).status, 200);
  });

  test('replies that are never read are bounded over all connections', async (t) => {
    // The memory limit must end the connections even on a slow machine. Otherwise, timeouts would free the memory
    // first.
    const patience = { readTimeoutMs: 60_000, writeTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
    const listener = await start(t, (asked) => replyWith(asked, 4000), true, patience);
    for (let n = 0; n < 3; n++) {
      const made = connectHttp2(`https://127.0.0.1:${listener.port}`, {
        ca: testCertificate,
        settings: { initialWindowSize: 0 },
      });
      made.on('error', () => {});
      t.after(() => made.destroy());
      await once(made, 'remoteSettings');
      for (let i = 0; i < 200; i++) {
        const stream = made.request({ ':path': '/dns-query', ':method': 'POST' });
        stream.on('error', () => {});
        stream.end(query);
      }
    }
    while (listener.counters.evicted.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal((await overHttp2(session(t, listener.port), { body: query })).status, 200);
  });

  test('headers that never end are abandoned, also over TLS', async (t) => {
    for (const secure of [true, false]) {
      const { port } = await start(t, answerOne, secure, { readTimeoutMs: 200 });
      const socket = secure
        ? connectTls({ port, host: '127.0.0.1', ca: testCertificate, ALPNProtocols: ['http/1.1'] })
        : connect(port, '127.0.0.1');
      socket.on('error', () => {});
      t.after(() => socket.destroy());
      socket.write('GET /dns-query HTTP/1.1\r\n');
      const drip = setInterval(() => socket.write('X: y\r\n'), 20);
      t.after(() => clearInterval(drip));
      // A write may be the first to notice that the connection has ended. The test only requires that it closes.
      await closed(socket.resume());
    }
  });

  test('close answers requests in flight', async (t) => {
    const listener = await start(t, (asked) => {
      const kept = asked.keep();
      return new Promise((resolve) => setTimeout(() => resolve(replyWith(kept)), 50));
    });
    const got = overHttp2(session(t, listener.port), { body: query });
    while (listener.counters.received.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 2));
    const closed = listener.close(2000);
    assert.equal((await got).status, 200);
    await closed;
  });
});
