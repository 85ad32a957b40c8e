import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';

import {
  strangerCertificate,
  testCertificate,
  testKey,
  testTls,
} from '../../../../test/kit/certificate.ts';
import {
  closed,
  StreamClient,
  answerOne,
  framed,
  listenerParts,
  queryBytes,
  replyWith,
} from '../../../../test/kit/loopback.ts';
import { systemClock } from '../../base/clock.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { ListenerTls, Serve } from '../listener.ts';
import type { StreamListener } from './stream-listener.ts';
import { tlsListener } from './tcp.ts';

async function start(
  t: TestContext,
  serve: Serve = answerOne,
  limits: Partial<ListenerLimits> = {},
  tls: ListenerTls = testTls,
): Promise<StreamListener> {
  const listener = tlsListener(listenerParts(serve, { scheme: 'tls' }, limits, tls));
  await listener.open();
  t.after(() => listener.close(0));
  return listener;
}

async function client(
  t: TestContext,
  { port }: StreamListener,
  options: ConnectionOptions = {},
  secret: (line: string) => void = () => undefined,
): Promise<StreamClient> {
  const wanted: ConnectionOptions & { allowHalfOpen: boolean } = {
    port,
    host: '127.0.0.1',
    ca: testCertificate,
    checkServerIdentity: () => undefined,
    allowHalfOpen: true,
    ...options,
  };
  const socket = connectTls(wanted);
  socket.on('keylog', (line: Buffer) => secret(line.toString('latin1').trimEnd()));
  t.after(() => socket.destroy());
  await once(socket, 'secureConnect');
  return new StreamClient(socket);
}

function raw(t: TestContext, { port }: StreamListener): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  return socket.resume();
}

const id = (message: Buffer | null): number => message?.readUInt16BE(0) ?? -1;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Counts our sockets on the port that are in state CLOSE_WAIT. */
function inCloseWait(port: number): number {
  const CLOSE_WAIT = '08';
  const ours = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/self/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(ours) && state === CLOSE_WAIT).length;
}

describe('DNS over TLS', () => {
  test('connection secrets are written to the key log, which only its owner may read', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-keylog-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'keys');
    const listener = await start(t, answerOne, {}, { ...testTls, keyLog: file });
    assert.equal(statSync(file).mode & 0o777, 0o600, 'it is there before anybody comes');
    for (const maxVersion of ['TLSv1.3', 'TLSv1.2'] as const) {
      const heard: string[] = [];
      const one = await client(t, listener, { maxVersion }, (line) => heard.push(line));
      one.send(queryBytes('a.example.org', 1));
      assert.equal(id(await one.next()), 1);
      const written = readFileSync(file, 'latin1').split('\n').slice(0, -1);
      // The lines in the client's own log. They must match, because both sides have the same secrets.
      for (const line of heard.filter((each) => !each.startsWith('EXPORTER')))
        assert.ok(written.includes(line), `${maxVersion} ${line}`);
      assert.ok(heard.length > 0);
    }
  });

  test('queries that wait for room are not corrupted while other connections are served', async (t) => {
    const held: (() => void)[] = [];
    const serve: Serve = (query) => {
      if (query.name !== 'slow.') return replyWith(query);
      const kept = query.keep();
      return new Promise((resolve) => held.push(() => resolve(replyWith(kept))));
    };
    const listener = await start(t, serve, { pipelined: 1 });
    const [patient, busy] = [await client(t, listener), await client(t, listener)];
    patient.send(queryBytes('slow.', 9000));
    while (held.length === 0) await pause(1);
    // Four TLS records of 16 KiB. The runtime decrypts input from all connections into the same memory, 64 KiB at a
    // time. The patient client's last record stays with the runtime until the next read. It shares that memory with
    // three records from the busy client.
    const ids = Array.from({ length: 2048 }, (_, n) => n);
    const many = ids.map((n) => queryBytes('thirty-two-b.', n));
    patient.send(...many);
    await pause(50);
    busy.send(...many);
    for (const n of ids) assert.equal(id(await busy.next()), n);
    for (const go of held) go();
    for (const n of [9000, ...ids]) assert.equal(id(await patient.next()), n);
  });

  test('an unwritable key log is reported once and costs no client its connection', async (t) => {
    const parts = listenerParts(
      answerOne,
      { scheme: 'tls' },
      {},
      {
        ...testTls,
        keyLog: '/proc/none/keys',
      },
    );
    const listener = tlsListener(parts);
    await listener.open();
    t.after(() => listener.close(0));
    const one = await client(t, listener);
    one.send(queryBytes('a.example.org', 1));
    assert.equal(id(await one.next()), 1);
    assert.equal(parts.lines.filter((line) => line.includes('TLS Key Log')).length, 1);
  });

  test('queries are answered, whatever protocol the client specifies in the handshake', async (t) => {
    const listener = await start(t);
    for (const options of [{}, { ALPNProtocols: ['dot'] }, { ALPNProtocols: ['h2'] }]) {
      const stream = await client(t, listener, options);
      stream.send(queryBytes('a.', 5));
      assert.equal(id(await stream.next()), 5);
    }
  });

  test('connections that end before their handshake is complete leave nothing behind', async (t) => {
    if (process.platform !== 'linux') return t.skip('needs /proc');
    const listener = await start(t, answerOne, { connections: 16, handshakes: 16 });
    const { counters } = listener;
    for (let round = 0; round < 5; round++) {
      const sockets = Array.from({ length: 100 }, () => raw(t, listener));
      for (const socket of sockets) socket.end();
      await Promise.all(sockets.map((socket) => closed(socket)));
    }
    for (let i = 0; i < 100 && counters.failedHandshakes.value < 500; i++) await pause(10);
    assert.equal(counters.failedHandshakes.value, 500);
    assert.equal(counters.handshakes.value, 0);
    assert.equal(inCloseWait(listener.port), 0);
    const stream = await client(t, listener);
    stream.send(queryBytes('after.', 6));
    assert.equal(id(await stream.next()), 6);
  });

  test('neither does garbage instead of a handshake', async (t) => {
    const listener = await start(t);
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\x16\x03\x01\x00\x05\x00\x00\x00\x00\x00']) {
      const socket = raw(t, listener);
      socket.write(Buffer.from(bytes, 'latin1'));
      await closed(socket);
    }
    assert.equal(listener.counters.handshakes.value, 0);
    assert.equal(listener.counters.failedHandshakes.value, 2);
  });

  test('a TLS 1.2 client cannot renegotiate', async (t) => {
    const listener = await start(t);
    const stream = await client(t, listener, { maxVersion: 'TLSv1.2' });
    stream.send(queryBytes('a.', 7));
    assert.equal(id(await stream.next()), 7);
    const refused = await new Promise((resolve) => {
      stream.socket.on('error', resolve);
      assert.ok((stream.socket as TLSSocket).renegotiate({}, resolve));
    });
    assert.match(String(refused), /no renegotiation/i);
  });

  test('a handshake has a time limit', async (t) => {
    const listener = await start(t, answerOne, { readTimeoutMs: 200 });
    await closed(raw(t, listener));
    assert.equal(listener.counters.timedOut.value, 1);
  });

  test('when memory is short, at most 64 handshakes are in progress', async (t) => {
    const parts = listenerParts(answerOne, { scheme: 'tls' }, {}, testTls);
    const listener = tlsListener({ ...parts, isShort: () => true });
    await listener.open();
    t.after(() => listener.close(0));
    for (let i = 0; i < 80; i++) raw(t, listener);
    for (let i = 0; i < 400 && listener.counters.evicted.value < 16; i++) await pause(5);
    assert.deepEqual(
      [listener.counters.evicted.value, listener.counters.handshakes.value],
      [16, 64],
    );
  });

  test('clients that only connect make room for those in a handshake, and cost no other client its connection', async (t) => {
    const listener = await start(t, answerOne, { handshakes: 8, connections: 4 });
    const before = await client(t, listener);
    before.send(queryBytes('a.', 1));
    assert.equal(id(await before.next()), 1);
    for (let i = 0; i < 100; i++) raw(t, listener);
    while (listener.counters.evicted.value < 92) await pause(5);
    const newcomer = await client(t, listener);
    newcomer.send(queryBytes('b.', 2));
    assert.equal(id(await newcomer.next()), 2);
    before.send(queryBytes('a.', 3));
    assert.equal(id(await before.next()), 3);
  });

  test('at the limit, the longest idle connection is closed and the new one is served', async (t) => {
    const listener = await start(t, answerOne, { connections: 3 });
    const all: StreamClient[] = [];
    for (let i = 0; i < 6; i++) {
      const stream = await client(t, listener);
      stream.send(queryBytes('a.', i));
      assert.equal(id(await stream.next()), i);
      all.push(stream);
    }
    for (const gone of all.slice(0, 3)) assert.ok(await gone.ended());
    assert.equal(listener.counters.evicted.value, 3);
    assert.equal(listener.counters.connections.value, 3);
  });

  test('a client that closes its side gets its pending reply', async (t) => {
    const listener = await start(t, (query) => {
      const kept = query.keep();
      return new Promise((resolve) => setTimeout(() => resolve(replyWith(kept)), 50));
    });
    const stream = await client(t, listener);
    stream.socket.end(framed(queryBytes('late.', 9)));
    assert.equal(id(await stream.next()), 9);
    assert.ok(await stream.ended());
  });

  test('a new certificate applies from the next handshake on, and open connections are unaffected', async (t) => {
    const listener = await start(t);
    const before = await client(t, listener);
    listener.adopt({
      limits: listener.limits,
      tls: { ...testTls, clientAuth: 'require_and_verify' },
      proxy: null,
    });
    before.send(queryBytes('a.', 1));
    assert.equal(id(await before.next()), 1);
    const stranger = await client(t, listener, { maxVersion: 'TLSv1.2' }).catch(() => null);
    assert.ok(stranger === null || (await stranger.ended()));
    const known = await client(t, listener, { cert: testCertificate, key: testKey }).catch(
      () => null,
    );
    assert.ok(known === null || (await known.ended()), 'signed by nobody that we know');
    listener.adopt({ limits: listener.limits, tls: testTls, proxy: null });
    const after = await client(t, listener);
    after.send(queryBytes('a.', 2));
    assert.equal(id(await after.next()), 2);
  });

  /** Returns true if a client of the first listener can resume its session at the second. */
  async function resumes(
    t: TestContext,
    first: StreamListener,
    second: StreamListener,
    maxVersion: 'TLSv1.2' | 'TLSv1.3',
  ): Promise<boolean> {
    const session = Promise.withResolvers<Buffer>();
    const before = await client(t, first, { maxVersion });
    const socket = before.socket as TLSSocket;
    if (maxVersion === 'TLSv1.2') session.resolve(socket.getSession()!);
    else socket.once('session', (bytes) => session.resolve(bytes));
    before.send(queryBytes('a.', 1));
    await before.next();
    const after = await client(t, second, { maxVersion, session: await session.promise });
    after.send(queryBytes('a.', 2));
    assert.equal(id(await after.next()), 2);
    return (after.socket as TLSSocket).isSessionReused();
  }

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    test(`a ${version} session is resumed at any listener with the same secret and settings, within a period`, async (t) => {
      const tls: ListenerTls = { ...testTls, ticketSecret: Buffer.alloc(32, 7) };
      const one = await start(t, answerOne, {}, tls);
      const two = await start(t, answerOne, {}, tls);
      assert.equal(await resumes(t, one, two, version), true);
      const stranger = { ...tls, ticketSecret: Buffer.alloc(32, 8) };
      assert.equal(await resumes(t, one, await start(t, answerOne, {}, stranger), version), false);
      const strict: ListenerTls = { ...tls, clientAuth: 'request' };
      assert.equal(await resumes(t, one, await start(t, answerOne, {}, strict), version), false);
      two.adopt({ limits: two.limits, tls: { ...tls }, proxy: null });
      assert.equal(await resumes(t, one, two, version), true);
      let wall = Date.now();
      const clock = { ...systemClock, wall: () => wall };
      const parts = listenerParts(answerOne, { scheme: 'tls' }, {}, tls);
      const later = tlsListener({ ...parts, clock });
      await later.open();
      t.after(() => later.close(0));
      assert.equal(await resumes(t, one, later, version), true);
      wall += 6 * 3600 * 1000;
      assert.equal(await resumes(t, one, later, version), false);
    });
  }

  // Keyed by client certificate: none, one from the CA, or one from another CA.
  for (const [clientAuth, nothing, ours, foreign] of [
    ['nocert', true, true, true],
    ['request', true, true, true],
    ['require', false, true, true],
    ['verify_if_given', true, true, false],
    ['require_and_verify', false, true, false],
  ] as const) {
    test(`client_auth ${clientAuth} admits the right clients`, async (t) => {
      const authorities = [testCertificate, strangerCertificate];
      for (const [authority, shown, welcome] of [
        [authorities[0]!, {}, nothing],
        [authorities[0]!, { cert: testCertificate, key: testKey }, ours],
        [authorities[1]!, { cert: testCertificate, key: testKey }, foreign],
      ] as const) {
        const listener = await start(t, answerOne, {}, { ...testTls, authority, clientAuth });
        const stream = await client(t, listener, shown);
        stream.send(queryBytes('a.', 1));
        assert.equal((await stream.next()) !== null, welcome, JSON.stringify(Object.keys(shown)));
        assert.equal(listener.counters.failedHandshakes.value, welcome ? 0 : 1);
      }
    });
  }
});
