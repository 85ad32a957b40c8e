import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { endHttp, listenHttp } from './http-listening.ts';
import { VirtualClock } from './virtual-clock.ts';
import { PageSender } from './page-sender.ts';

const MIB = 1024 * 1024;

test('clients that do not read hold no more than the limit, and the next client gets the page', async (t) => {
  const pages = new PageSender(new VirtualClock(), 64 * MIB);
  let made = 0;
  let cut = 0;
  const server = createServer((request, response) => {
    response.on('close', () => (cut += response.writableFinished ? 0 : 1));
    // Request different pages, so that each is held in memory separately.
    pages.send({ headers: {} }, response, request.url ?? '', 'text/plain', () => {
      made++;
      return 'x'.repeat(16 * MIB);
    });
  });
  const port = await listenHttp(server, '127.0.0.1', 0);
  const sockets: Socket[] = [];
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await endHttp(server, 100);
  });
  for (let count = 0; count < 12; count++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.write(`GET /${count} HTTP/1.1\r\nHost: a\r\n\r\n`);
    socket.pause();
    sockets.push(socket);
  }
  while (made < 12) await pause(20);
  const response = await fetch(`http://127.0.0.1:${port}/last`);
  assert.equal((await response.text()).length, 16 * MIB);
  assert.ok(cut >= 8, `${cut} were cut off`);
});

test('a page is rendered once a second regardless of the number of requests', async () => {
  const clock = new VirtualClock();
  const pages = new PageSender(clock);
  let made = 0;
  const bodies: unknown[] = [];
  const response = {
    once: () => undefined,
    destroy: () => undefined,
    writeHead: () => ({ end: (body: unknown) => void bodies.push(body) }),
  };
  const ask = (): void =>
    pages.send(
      { headers: {} },
      { ...response } as never,
      '/',
      'text/plain',
      () => `page ${++made}`,
    );
  for (let count = 0; count < 10_000; count++) ask();
  assert.equal(made, 1);
  assert.equal(new Set(bodies).size, 1, 'and lies in memory once');
  await clock.advance(1001);
  ask();
  assert.equal(made, 2);
});

test('a page is compressed once, for clients that accept gzip', async (t) => {
  const pages = new PageSender(new VirtualClock());
  const server = createServer((request, response) =>
    pages.send(request, response, '/', 'text/plain', () => 'x'.repeat(100_000)),
  );
  const port = await listenHttp(server, '127.0.0.1', 0);
  t.after(() => endHttp(server, 100));
  for (const [accepts, packed] of [
    ['gzip', true],
    ['br;q=1.0, gzip;q=0.5', true],
    ['GZIP', true],
    ['gzip;q=0', false],
    ['identity', false],
    ['xgzip', false],
  ] as const) {
    const reply = await fetch(`http://127.0.0.1:${port}`, {
      headers: { 'accept-encoding': accepts },
    });
    assert.equal(reply.headers.get('content-encoding'), packed ? 'gzip' : null, accepts);
    assert.equal((await reply.text()).length, 100_000, accepts);
  }
});
