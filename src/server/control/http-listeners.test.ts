import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { makeLog } from '../../base/log.ts';
import type { HttpHandler } from '../contract/control-context.ts';
import { HttpListeners } from './http-listeners.ts';

const ADDRESS = '127.0.0.1:0';

const hello: HttpHandler = (_request, response) => void response.end('hello');

async function open(
  t: TestContext,
  paths: Readonly<Record<string, HttpHandler>> = { '/hello': hello },
): Promise<{ port: number; lines: string[]; listeners: HttpListeners }> {
  const lines: string[] = [];
  const listeners = new HttpListeners(makeLog((line) => lines.push(line)));
  const plan = new Map([[ADDRESS, new Map(Object.entries(paths))]]);
  await listeners.open(plan);
  await listeners.commit(plan);
  t.after(() => listeners.close());
  return { port: listeners.port(ADDRESS)!, lines, listeners };
}

/** Sends the bytes of a request as they stand; the whole reply. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let reply = '';
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  socket.end(text);
  await new Promise((resolve) => socket.on('close', resolve));
  return reply;
}

const get = (target: string): string =>
  `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

describe('HTTP listeners', () => {
  test('a target that is no URL is not found, and harms nobody', async (t) => {
    const { port } = await open(t);
    for (const target of ['//', '///', '//[', 'http://[/', '*', '/%', '//hello:99999999']) {
      assert.match(await raw(port, get(target)), /^HTTP\/1\.1 404 /, target);
    }
    assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 [^]*hello$/);
  });

  test('query, fragment and absolute form do not matter', async (t) => {
    const { port } = await open(t);
    for (const target of ['/hello?x=1', '/hello#top', 'http://any.host:1/hello?a/b']) {
      assert.match(await raw(port, get(target)), /^HTTP\/1\.1 200 /, target);
    }
  });

  test('a handler that throws is a 500 and a line in the log', async (t) => {
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

  test('nonsense, endless headers and a body nobody wants leave the next request unharmed', async (t) => {
    const { port } = await open(t);
    assert.match(await raw(port, '\0\x01\x02 nonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
    const endless = `GET /hello HTTP/1.1\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`;
    assert.match(await raw(port, endless), /^(HTTP\/1\.1 431 |$)/);
    const posted = `POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx`;
    await raw(port, posted);
    assert.match(await raw(port, get('/hello')), /^HTTP\/1\.1 200 /);
  });

  test('connections are bounded, and those that were there stay usable', async (t) => {
    const { port } = await open(t);
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    const first = connect(port, '127.0.0.1');
    sockets.push(first);
    await once(first, 'connect');
    let closed = 0;
    for (let i = 0; i < 300; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.on('close', () => closed++);
      socket.resume();
      sockets.push(socket);
    }
    while (closed < 300 + 1 - 256) await new Promise((resolve) => setTimeout(resolve, 5));
    const asked = httpRequest({
      port,
      host: '127.0.0.1',
      path: '/hello',
      createConnection: () => first,
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [{ statusCode: number }];
    assert.equal(response.statusCode, 200);
  });
});
