import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test, type TestContext } from 'node:test';
import { createGunzip } from 'node:zlib';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { systemClock } from '../../base/clock.ts';
import { secretGate } from '../../base/http-access.ts';
import { LineWriter } from '../../base/line-ring.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import {
  DnstapWriter,
  LEFT_OUT,
  readDnstap,
  TAP,
  TAP_PATH,
  type Dnstap,
} from '../../wire/dnstap.ts';
import { Tap } from '../../engine/taps/message-tap.ts';
import { FrameReader } from '../../wire/frame-stream.ts';
import { TapReaders } from './tap-readers.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-console-'));
after(() => rmSync(directory, { recursive: true }));
const TOKEN = 'a-token-that-is-long-enough';
writeFileSync(join(directory, 'token'), `${TOKEN}\n`);
const at = '127.0.0.1:0';

async function serve(t: TestContext, words = 'token_file token'): Promise<World> {
  const world = await makeWorld(
    `.:53 {\n console ${at} {\n ${words}\n }\n prometheus ${at}1\n hosts {\n 192.0.2.1 a.example\n }\n}`.replace(
      `${at}1`,
      at,
    ),
    { clock: new VirtualClock(), directory },
  );
  t.after(() => world.close());
  return world;
}

async function connected(
  world: World,
  headers: Readonly<Record<string, string>> = {},
): Promise<IncomingMessage> {
  const asked = request({
    host: '127.0.0.1',
    port: world.server.httpPort(at),
    path: TAP_PATH,
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    agent: false,
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return response;
}

/** Yields the messages of a stream as they arrive. */
function messagesOf(response: IncomingMessage): Dnstap[] {
  const messages: Dnstap[] = [];
  const reader = new FrameReader(1 << 20);
  const isPacked = response.headers['content-encoding'] === 'gzip';
  const stream = isPacked ? response.pipe(createGunzip()) : response;
  stream.on('error', () => undefined);
  stream.on('data', (bytes: Buffer) => {
    reader.push(bytes);
    for (let frame = reader.next(); frame !== null; frame = reader.next())
      if (frame instanceof Uint8Array) messages.push(readDnstap(Uint8Array.from(frame)));
  });
  return messages;
}

/** Advances the virtual clock until a condition holds. */
async function until(world: World, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 5000 && !holds(); turn++) {
    await world.clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(holds());
}

/** Builds a frame containing a client query of `size` bytes. */
function tapFrame(size: number): Uint8Array {
  const writer = new DnstapWriter(new Uint8Array(0), 0);
  writer.begin(TAP.CLIENT_QUERY, '');
  writer.queryMessage(new Uint8Array(size), 0, size);
  writer.endFrame();
  return writer.bytes.slice(writer.start, writer.at);
}

describe('console', () => {
  test('a reader gets each query with its reply in one message, compressed or not', async (t) => {
    const world = await serve(t);
    for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
      const response = await connected(world, headers);
      assert.equal(response.statusCode, 200);
      assert.equal(response.headers['ndots-stream'], '1');
      const messages = messagesOf(response);
      await world.ask('a.example');
      await until(world, () => messages.some(({ type }) => type === TAP.CLIENT_RESPONSE));
      const told = messages.filter(({ type }) => type !== 0);
      assert.equal(told.length, 1);
      assert.ok(told[0]!.queryMessage !== null && told[0]!.responseMessage !== null);
      const notes = messages.filter(({ type }) => type === 0).map(({ extra }) => extra);
      assert.match(notes[0]!, /^ndots-configuration \[\{"file":"Corefile","text":".*a\.example/);
      assert.equal(notes[1], `${LEFT_OUT}0`);
      response.destroy();
    }
  });

  test('a reader with a missing, wrong or misplaced token is rejected', async (t) => {
    const world = await serve(t);
    for (const authorization of ['', 'Bearer ', 'Bearer x', TOKEN, `Basic ${TOKEN}`]) {
      const response = await connected(world, { authorization });
      assert.equal(response.statusCode, 401, authorization);
      response.resume();
    }
  });

  test('a fifth reader is refused until another one disconnects', async (t) => {
    const world = await serve(t);
    const readers: IncomingMessage[] = [];
    for (let i = 0; i < 4; i++) readers.push(await connected(world));
    const fifth = await connected(world);
    assert.equal(fifth.statusCode, 503);
    fifth.resume();
    readers[0]!.destroy();
    let status = 0;
    for (let turn = 0; turn < 200 && status !== 200; turn++) {
      const again = await connected(world);
      status = again.statusCode!;
      again.destroy();
    }
    assert.equal(status, 200);
    for (const reader of readers) reader.destroy();
  });

  test('a missing or short token file stops the start', async () => {
    writeFileSync(join(directory, 'short'), 'short');
    for (const [file, why] of [
      ['nowhere', /token_file cannot be read/],
      ['short', /has 5 characters/],
    ] as const)
      await assert.rejects(
        makeWorld(`. {\n console ${at} {\n token_file ${file}\n }\n whoami\n}`, { directory }),
        why,
      );
  });
});

describe('live query readers', () => {
  test('nothing is written while there are none', async (t) => {
    const writes = t.mock.method(Tap.prototype, 'both');
    const world = await serve(t);
    for (let i = 0; i < 100; i++) await world.ask('a.example');
    assert.equal(writes.mock.callCount(), 0);
    const response = await connected(world);
    await world.ask('a.example');
    assert.equal(writes.mock.callCount(), 1);
    const sees = (): number => Number(/^ndots_console_readers (\d+)/m.exec(world.metrics())?.[1]);
    await until(world, () => sees() === 1);
    response.destroy();
    await until(world, () => sees() === 0);
    await world.ask('a.example');
    assert.equal(writes.mock.callCount(), 1);
  });

  test('a stalled reader misses messages and receives their number, and the server buffers little for it', async (t) => {
    const readers = new TapReaders(systemClock);
    const ring = readers.frames.add(4 << 20);
    const server = createServer((asked, response) =>
      readers.serve(asked, response, { gate: secretGate(() => TOKEN), identity: 'one' }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => {
      readers.close();
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const asked = request({
      ...{ host: '127.0.0.1', port, path: TAP_PATH, agent: false },
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.pause();
    const writer = new LineWriter(ring);
    const bytes = tapFrame(60_000);
    let written = 0;
    const before = process.memoryUsage().arrayBuffers;
    while (readers.leftOut === 0) {
      for (let i = 0; i < 20; i++, written++) writer.writeBytes(bytes, 0, bytes.length);
      await new Promise((resolve) => setTimeout(resolve, 15));
      assert.ok(written < 2000, 'the server takes all of it');
    }
    for (let i = 0; i < 400; i++, written++) {
      writer.writeBytes(bytes, 0, bytes.length);
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
    }
    const grown = process.memoryUsage().arrayBuffers - before;
    assert.ok(grown < 32 << 20, `${grown} bytes more`);
    const messages = messagesOf(response);
    response.resume();
    const missed = (): number =>
      Number(messages.findLast(({ type }) => type === 0)?.extra?.slice(LEFT_OUT.length) ?? 0);
    const came = (): number => messages.filter(({ type }) => type !== 0).length;
    while (came() + missed() < written) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(came() + missed(), written);
    assert.ok(missed() > 0);
  });

  test('close disconnects them and stops all recording', () => {
    const readers = new TapReaders(new VirtualClock());
    readers.close();
    assert.equal(readers.watched[0], 0);
    assert.equal(readers.connected, 0);
  });
});
