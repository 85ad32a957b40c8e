import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { systemClock } from './clock.ts';
import { sendHttp, type HttpRequest } from './http-request.ts';

const bounds = {
  clock: systemClock,
  waitMs: 10_000,
  late: 'late',
  bytesMax: 10,
  tooLong: 'too long',
};

async function serve(t: TestContext, answer: RequestListener): Promise<Pick<HttpRequest, 'url'>> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`) };
}

test('a reply has its status and body', async (t) => {
  const to = await serve(t, (request, response) => {
    response.writeHead(404);
    request.pipe(response);
  });
  const options = { method: 'POST' };
  const { status, body } = await sendHttp({ ...to, ...bounds, options, body: 'hello' });
  assert.deepEqual([status, body.toString()], [404, 'hello']);
});

test('an oversized body, or one that the reader rejects, ends the request', async (t) => {
  const to = await serve(t, (_, response) => {
    response.write('0123456789');
    response.write('0');
  });
  await assert.rejects(sendHttp({ ...to, ...bounds }), { message: 'too long' });
  const take = (piece: Buffer, status: number): void => {
    throw new Error(`${status} ${piece.length}`);
  };
  await assert.rejects(sendHttp({ ...to, ...bounds, bytesMax: 99, take }), /^Error: 200 1[01]$/);
});

test('a server that never answers, or stops midway, times out', async (t) => {
  const silent = await serve(t, () => undefined);
  const soon = { ...bounds, waitMs: 50 };
  await assert.rejects(sendHttp({ ...silent, ...soon }), { message: 'late' });
  const stopped = await serve(t, (_, response) => response.write('0'));
  await assert.rejects(sendHttp({ ...stopped, ...soon }), { message: 'late' });
  const aborted = await serve(t, (request) => request.socket.destroy());
  await assert.rejects(sendHttp({ ...aborted, ...bounds }), { code: 'ECONNRESET' });
});
