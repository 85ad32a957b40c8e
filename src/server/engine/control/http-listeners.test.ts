import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { makeLog } from '../../base/log.ts';
import { PageSender } from '../../base/page-sender.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Collection } from '../../metrics/collection.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import type { HttpHandler } from '../contract/control-context.ts';
import { closeEarly, openEarly } from '../contract/early-http.ts';
import { httpAddress, HttpListeners } from './http-listeners.ts';

const ADDRESS = '127.0.0.1:0';

const hello: HttpHandler = (_request, response) => void response.end('hello');

async function open(
  t: TestContext,
  paths: Readonly<Record<string, HttpHandler>> = { '/hello': hello },
  address = ADDRESS,
): Promise<{ port: number; lines: string[]; metrics: () => string }> {
  const lines: string[] = [];
  const collection = new Collection();
  const registry = new SharedRegistry((event) => collection.add('main', event));
  const listeners = new HttpListeners(
    makeLog((line) => lines.push(line)),
    registry,
  );
  const plan = new Map([
    [httpAddress(address), { paths: new Map(Object.entries(paths)), tls: null }],
  ]);
  await listeners.open(plan);
  await listeners.commit(plan);
  t.after(() => listeners.close());
  return { port: listeners.port(address)!, lines, metrics: () => collection.print('text') };
}

/**
 * Sends a request's bytes unchanged.
 * @returns the whole reply
 */
async function raw(
  port: number,
  text: string,
  { host = '127.0.0.1', waits = false } = {},
): Promise<string> {
  const socket = connect(port, host);
  let reply = '';
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  if (waits) socket.write(text);
  else socket.end(text);
  await new Promise((resolve) => socket.on('close', resolve));
  return reply;
}

const get = (target: string): string =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

describe('HTTP listeners', () => {
  test('a target that is not a URL is not found, and later requests succeed', async (t) => {
    const { port } = await open(t);
    for (const target of ['//', '///', '//[', 'http://[/', '*', '/%', '//hello:99999999']) {
      assert.match(await raw(port, get(target)), /^HTTP\/1\.1 404 /, target);
    }
    assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 [^]*hello$/);
  });

  test('query, fragment and absolute form make no difference', async (t) => {
    const { port } = await open(t);
    for (const target of ['/hello?x=1', '/hello#top', 'http://any.host:1/hello?a/b']) {
      assert.match(await raw(port, get(target)), /^HTTP\/1\.1 200 /, target);
    }
  });

  test('a handler that throws is a 500 and a log line', async (t) => {
    const { port, lines } = await open(t, {
      '/hello': hello,
      '/broken': () => {
        throw new Error('a bug');
      },
    });
    assert.match(await raw(port, get('/broken')), /^HTTP\/1\.1 500 /);
    assert.match(lines.join('\n'), /\[ERROR\] GET \/broken: Error: a bug/);
    assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 /);
  });

  test('a request that arrives before the previous answer closes the connection after that answer', async (t) => {
    let answered = 0;
    const count: HttpHandler = (_request, response) => {
      answered++;
      response.end('hello');
    };
    const { port, metrics } = await open(t, { '/hello': count });
    const keep = 'GET /hello HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const more of [1, 15, 400, 5000]) {
      answered = 0;
      assert.equal((await raw(port, keep.repeat(1 + more))).match(/hello/g)?.length, 1, `${more}`);
      assert.equal(answered, 1, `${more}`);
    }
    assert.match(metrics(), /^ndots_http_refused_total 4$/m);
  });

  test('waiting requests on one connection are all answered', async (t) => {
    const { port } = await open(t);
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    for (let i = 0; i < 50; i++) {
      socket.write('GET /hello HTTP/1.1\r\nHost: x\r\n\r\n');
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      assert.match(chunk.toString(), /^HTTP\/1\.1 200 /);
    }
  });

  test('a client has at most 8 requests in progress; further ones are 503 with Retry-After, probes never', async (t) => {
    const held: ServerResponse[] = [];
    const probe: HttpHandler = (_request, response) => void response.end('alive');
    const { port, metrics } = await open(t, {
      '/metrics': (_request, response) => void held.push(response),
      '/health': Object.assign(probe, { probe: true }),
    });
    const late = Array.from({ length: 8 }, () => raw(port, get('/metrics'), { waits: true }));
    while (held.length < 8) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 20; i++) assert.match(await raw(port, get('/health')), /alive$/);
    for (let i = 0; i < 5; i++) {
      const refused = await raw(port, get('/metrics'), { waits: true });
      assert.match(refused, /^HTTP\/1\.1 503 /);
      assert.match(refused, /\r\nretry-after: 1\r\n/i);
    }
    assert.equal(held.length, 8);
    for (const response of held.splice(0)) response.end('late');
    for (const reply of late) assert.match(await reply, /late$/);
    assert.match(metrics(), /^ndots_http_refused_total 5$/m);
    const served = raw(port, get('/metrics'), { waits: true });
    while (held.length < 1) await new Promise((resolve) => setImmediate(resolve));
    held[0]!.end('late');
    assert.match(await served, /late$/);
  });

  test('garbage, endless headers and an unread body do not affect the next request', async (t) => {
    const { port } = await open(t);
    assert.match(await raw(port, '\0\x01\x02 nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
    const endless = `GET /hello HTTP/1.1\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`;
    assert.match(await raw(port, endless), /^(HTTP\/1\.1 431 |$)/);
    const posted = `POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx`;
    await raw(port, posted);
    assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 /);
  });

  test('an unread body is discarded up to a few kilobytes; then the connection ends, with its request answered', async (t) => {
    const { port } = await open(t);
    const chunk = Buffer.alloc(64 * 1024, 'x');
    for (const length of ['Content-Length: 500000000', 'Transfer-Encoding: chunked']) {
      const socket = connect(port, '127.0.0.1');
      t.after(() => socket.destroy());
      let reply = '';
      socket.on('data', (bytes: Buffer) => (reply += bytes.toString('latin1')));
      socket.on('error', () => undefined);
      const gone = new Promise((resolve) => socket.once('close', resolve));
      socket.write(`POST /hello HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`);
      const body = length.startsWith('T')
        ? Buffer.concat([Buffer.from('10000\r\n'), chunk, Buffer.from('\r\n')])
        : chunk;
      let sent = 0;
      const more = (): void => {
        while (!socket.destroyed && sent < 256 << 20) {
          sent += body.length;
          if (!socket.write(body)) return;
        }
      };
      socket.on('drain', more);
      await once(socket, 'data');
      more();
      await gone;
      assert.match(reply, /^HTTP\/1\.1 200 [^]*hello/);
      assert.ok(sent < 32 << 20, `${sent} bytes were taken`);
    }
  });

  test('a short body leaves its connection usable for the next request', async (t) => {
    const { port } = await open(t);
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    const post = 'POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n';
    for (const request of [post + 'x'.repeat(2000), get('/hello')]) {
      socket.write(request);
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      assert.match(chunk.toString(), /^HTTP\/1\.1 200 [^]*hello$/);
    }
  });

  test("the reply for a missing page is the same as Go's, with its length", async (t) => {
    const { port } = await open(t);
    const reply = (await raw(port, get('/other'))).toLowerCase();
    assert.match(reply, /^http\/1\.1 404 not found\r\n/);
    assert.match(reply, /\r\ncontent-type: text\/plain; charset=utf-8\r\n/);
    assert.match(reply, /\r\nx-content-type-options: nosniff\r\n/);
    assert.match(reply, /\r\ncontent-length: 19\r\n[^]*\r\n\r\n404 page not found\n$/);
  });

  for (const [address, served] of [
    ['0.0.0.0:0', ['127.0.0.1', '::1']],
    [':0', ['127.0.0.1', '::1']],
    ['localhost:0', ['127.0.0.1']],
  ] as const) {
    test(`${address} is served on ${served.join(' and ')}`, async (t) => {
      const { port } = await open(t, undefined, address);
      for (const host of ['127.0.0.1', '::1']) {
        const reply = raw(port, get('/hello'), { host });
        if ((served as readonly string[]).includes(host)) assert.match(await reply, /hello$/);
        else assert.equal(await reply, '');
      }
    });
  }

  test('two spellings of one address are the same', () => {
    assert.equal(httpAddress('0.0.0.0:9153'), httpAddress(':9153'));
    assert.equal(httpAddress('[::]:9153'), httpAddress(':9153'));
    assert.equal(httpAddress('localhost:9153'), httpAddress('127.0.0.1:9153'));
    assert.notEqual(httpAddress('[::1]:9153'), httpAddress(':9153'));
  });

  test('idle connections are limited, and a new one is always served', async (t) => {
    const { port, metrics } = await open(t);
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    let closed = 0;
    for (let i = 0; i < 300; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.on('close', () => closed++);
      socket.resume();
      sockets.push(socket);
      if (i % 50 === 0) await once(socket, 'connect');
    }
    for (let probe = 0; probe < 10; probe++) {
      assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 [^]*hello$/);
    }
    // The oldest made room.
    assert.ok(closed >= 300 + 1 - 256, `${closed}`);
    assert.ok(sockets[0]!.destroyed);
    assert.ok(!sockets[299]!.destroyed);
    assert.match(metrics(), /^ndots_http_evicted_total\{address="127\.0\.0\.1:0"\} [1-9]/m);
    assert.match(metrics(), /^ndots_http_connections\{address="127\.0\.0\.1:0"\} 25[0-6]$/m);
  });

  test('a reused connection is evicted later than one that was not reused', async (t) => {
    const { port } = await open(t);
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    const used = connect(port, '127.0.0.1');
    sockets.push(used);
    await once(used, 'connect');
    for (let i = 0; i < 255; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.resume();
      sockets.push(socket);
      if (i === 254) await once(socket, 'connect');
    }
    const ask = async (): Promise<void> => {
      used.write('GET /hello HTTP/1.1\r\nHost: x\r\n\r\n');
      const [chunk] = (await once(used, 'data')) as [Buffer];
      assert.match(chunk.toString(), /^HTTP\/1\.1 200 /);
    };
    await ask();
    for (let i = 0; i < 10; i++) await raw(port, get('/hello'));
    await ask();
  });

  test('every probe is answered during a flood of scrapes, which are rendered once', async (t) => {
    let rendered = 0;
    const pages = new PageSender(new VirtualClock());
    const body = 'x'.repeat(200_000);
    const probe: HttpHandler = (_request, response) => void response.end('alive');
    const { port } = await open(t, {
      '/metrics': (request, response) =>
        pages.send(request, response, 'text', 'text/plain', () => {
          rendered++;
          return body;
        }),
      '/health': Object.assign(probe, { probe: true }),
    });
    const flood = Array.from(
      { length: 120 },
      (_, each) => new Flooder(port, each % 4 === 0 ? 16 : 1),
    );
    t.after(() => flood.forEach((flooder) => flooder.end()));
    const replies = (): number => flood.reduce((sum, each) => sum + each.replies, 0);
    while (replies() < 500) await new Promise((resolve) => setImmediate(resolve));
    for (let i = 0; i < 9; i++) {
      const before = replies();
      assert.match(await raw(port, get('/health')), /^HTTP\/1\.1 200 [^]*alive$/);
      while (replies() === before) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(rendered, 1);
  });

  test('a client with many connections does not cost another client its own', async (t) => {
    const { port } = await open(t, undefined, '0.0.0.0:0');
    const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    t.after(() => other.destroy());
    await once(other, 'connect');
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (let i = 0; i < 600; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.resume();
      sockets.push(socket);
      if (i % 100 === 99) await once(socket, 'connect');
    }
    assert.match(await raw(port, get('/hello')), /hello$/);
    other.write(get('/hello'));
    const [chunk] = (await once(other, 'data')) as [Buffer];
    assert.match(chunk.toString(), /^HTTP\/1\.1 200 /);
  });

  for (const host of ['', '127.0.0.1'])
    test(`${host}:PORT, opened before the server, answers earlier and later connections`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-early-'));
      t.after(() => rmSync(directory, { recursive: true }));
      const [port, other] = await freePorts(2);
      writeFileSync(
        join(directory, 'Corefile'),
        `. {\n ready ${host}:${port}\n health :${other}\n}\n`,
      );
      await openEarly(
        ['-conf', join(directory, 'Corefile')],
        new Map([
          ['ready', 1],
          ['health', 2],
        ]),
      );
      const early = raw(port, get('/hello'));
      const unread = connect(port, '127.0.0.1');
      await once(unread, 'connect');
      await open(t, { '/hello': hello }, `${host}:${port}`);
      assert.match(await early, /^HTTP\/1\.1 200 [^]*hello$/);
      assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 [^]*hello$/);
      unread.destroy();
      closeEarly();
      const closed = connect(other, '127.0.0.1');
      await assert.rejects(once(closed, 'connect'), { code: 'ECONNREFUSED' });
    });
});

/**
 * Sends scrapes over a connection, several at once, and then more whenever an answer arrives or the connection is
 * closed.
 */
class Flooder {
  readonly #port: number;
  readonly #atOnce: number;
  #socket: Socket | null = null;
  #ended = false;
  replies = 0;

  constructor(port: number, atOnce: number) {
    this.#port = port;
    this.#atOnce = atOnce;
    this.#connect();
  }

  #connect(): void {
    if (this.#ended) return;
    const socket = connect(this.#port, '127.0.0.1');
    this.#socket = socket;
    const ask = (): boolean =>
      socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(this.#atOnce));
    socket.on('error', () => undefined);
    socket.on('connect', ask);
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes('HTTP/1.1')) return;
      this.replies++;
      ask();
    });
    socket.on('close', () => this.#connect());
  }

  end(): void {
    this.#ended = true;
    this.#socket?.destroy();
  }
}
