import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { secretGate, type AccessDecision } from './http-access.ts';
import { endHttp } from './http-listening.ts';
import { StreamReaders } from './stream-readers.ts';
import { VirtualClock } from './virtual-clock.ts';

const TOKEN = 'a-token-that-is-long-enough';

describe('readers of a stream', () => {
  let clock: VirtualClock;
  let readers: StreamReaders;
  let server: Server;
  let port = 0;
  let isWatched = false;
  let decide: (token: string | null) => AccessDecision | Promise<AccessDecision>;
  beforeEach(async () => {
    clock = new VirtualClock();
    const source = {
      ...{ path: '/s', headers: {}, lost: 0 },
      watched: (on: boolean) => void (isWatched = on),
      opening: () => Buffer.from('begin,'),
      leftOut: (count: number) => Buffer.from(`left ${count},`),
      closing: () => Buffer.from('end'),
    };
    readers = new StreamReaders(source, clock, () => undefined);
    const { decide: own } = secretGate(() => TOKEN);
    decide = (token) => own({ token, verb: 'get', path: '/s' });
    const gate = { againMs: null, decide: ({ token }: { token: string | null }) => decide(token) };
    server = createServer((asked, response) =>
      readers.serve(asked, response, { gate, identity: 'x' }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  });
  afterEach(() => {
    readers.close();
    server.closeAllConnections();
    server.close();
  });

  async function ask(
    headers: Readonly<Record<string, string>> = {},
    method = 'GET',
  ): Promise<IncomingMessage> {
    const asked = request({
      ...{ host: '127.0.0.1', port, path: '/s', method, agent: false },
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return response.on('error', () => undefined);
  }

  async function until(holds: () => boolean): Promise<void> {
    for (let turn = 0; turn < 2000 && !holds(); turn++)
      await new Promise((resolve) => setTimeout(resolve, 1));
    assert.ok(holds());
  }

  for (const method of ['HEAD', 'POST', 'DELETE'])
    test(`a request with ${method} is refused, because it would hold a place without reading`, async () => {
      const response = await ask({}, method);
      assert.equal(response.statusCode, 405);
      assert.equal(response.headers.allow, 'GET');
      assert.equal(readers.connected, 0);
      response.destroy();
    });

  for (const [header, coding] of [
    ['gzip', 'gzip'],
    ['br, gzip;q=0.5', 'gzip'],
    ['gzip;q=0', undefined],
    ['identity;q=1, gzip; q=0.000', undefined],
    ['x-gzip-not', undefined],
    ['', undefined],
  ] as const)
    test(`"${header}" is answered ${coding === undefined ? 'without compression' : 'with gzip'}`, async () => {
      const response = await ask({ 'accept-encoding': header });
      assert.equal(response.headers['content-encoding'], coding);
      response.destroy();
    });

  test('requests behind a stream on its connection get no place, and leave none taken', async () => {
    const socket: Socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    const one = `GET /s HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n\r\n`;
    socket.write(one.repeat(4));
    await once(socket, 'close');
    await until(() => readers.connected === 0);
    assert.equal(isWatched, false);
  });

  test('a client that leaves while its token is being checked gets no place', async () => {
    let accept = (): void => undefined;
    decide = () => new Promise((resolve) => (accept = () => resolve(null)));
    const asked = request({ host: '127.0.0.1', port, path: '/s', agent: false });
    asked.on('error', () => undefined);
    asked.end();
    await once(server, 'request');
    asked.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    accept();
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(readers.connected, 0);
    assert.equal(isWatched, false);
  });

  for (const headers of [{}, { 'accept-encoding': 'gzip' }])
    test(`an end in the middle of the stream is complete at the reader: ${JSON.stringify(headers)}`, async () => {
      const response = await ask(headers);
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      const ended = once(response, 'end');
      readers.give(Buffer.alloc(1 << 20, 'x'), 1);
      readers.close();
      await endHttp(server, 1000);
      await ended;
      const bytes = Buffer.concat(pieces);
      const text = ('accept-encoding' in headers ? gunzipSync(bytes) : bytes).toString();
      assert.match(text, /x,?end$|xend$/);
    });
});
