import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, describe, test } from 'node:test';
import { connect as connectTls, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { DnstapCollector, DnstapReader, until } from '../../../../test/kit/dnstap-collector.ts';
import { testCertificate, testKey } from '../../../../test/kit/certificate.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { Authority } from '../../../../test/kit/authority.ts';
import { systemClock } from '../../base/clock.ts';
import { LineWriter, type LineRingMemory } from '../../base/line-ring.ts';
import { makeLog } from '../../base/log.ts';
import { secureRandom } from '../../base/random.ts';
import { dnstapPrefix, DnstapWriter, readDnstap, TAP } from '../../wire/dnstap.ts';
import { CONTROL } from '../../wire/frame-stream.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { Frames } from '../../engine/taps/tap-frames.ts';
import { Incoming } from './incoming.ts';
import type { DnstapEndpoint } from './dnstap-options.ts';
import { Outgoing } from './outgoing.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-dnstap-'));
after(() => rmSync(directory, { recursive: true }));

let lines: string[] = [];
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of closing.splice(0).toReversed()) await each.close();
  lines = [];
});
const log = makeLog((line) => lines.push(line));

const unix = (name: string, listen = false): DnstapEndpoint => ({
  listen,
  kind: 'unix',
  path: join(directory, name),
  host: '',
  port: 0,
  text: name,
  full: false,
  writeBuffer: 1,
  queue: 1,
});

/** Builds a frame whose message contains `extra`. */
function frame(extra: string): Uint8Array {
  const writer = new DnstapWriter(dnstapPrefix('t', ''), 0);
  writer.begin(TAP.CLIENT_QUERY, extra);
  writer.endFrame();
  return writer.bytes.slice(writer.start, writer.at);
}

/** Writes frames `from` … `to - 1` into a ring. */
function fill(ring: LineRingMemory, from: number, to: number): void {
  const writer = new LineWriter(ring);
  for (let i = from; i < to; i++) {
    const bytes = frame(String(i));
    writer.writeBytes(bytes, 0, bytes.length);
  }
}

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => String(from + at));

async function outgoing(endpoint: DnstapEndpoint): Promise<Outgoing> {
  const made = new Outgoing(endpoint, false, systemClock, secureRandom, log);
  closing.push(made);
  made.start();
  return Promise.resolve(made);
}

async function collector(name: string, reads = true): Promise<DnstapCollector> {
  const made = await DnstapCollector.listen({ path: join(directory, name) }, reads);
  closing.push(made);
  return made;
}

describe('frames from workers', () => {
  test('arrive complete and in order, even across the end of the ring, and overflow is counted', () => {
    const frames = new Frames(systemClock);
    const ring = frames.add(4096);
    const found: string[] = [];
    let written = 0;
    for (let round = 0; round < 50; round++) {
      fill(ring, written, written + 37);
      written += 37;
      for (let chunk = frames.take(); chunk !== null; chunk = frames.take()) {
        for (let at = 0, left = chunk.frames; left > 0; left--) {
          const end = at + 4 + chunk.bytes.readUInt32BE(at);
          found.push(readDnstap(chunk.bytes.subarray(at + 4, end)).extra!);
          at = end;
        }
      }
    }
    assert.deepEqual(found, numbers(0, 50 * 37));
    fill(ring, 0, 10_000);
    const kept = frames.take()!;
    assert.equal(kept.frames + frames.lost, 10_000);
  });

  test('a ring without a writer is removed once it has been read, but its losses stay counted', () => {
    const frames = new Frames(systemClock);
    const ring = frames.add(4096);
    fill(ring, 0, 1000);
    const { lost } = frames;
    assert.ok(lost > 0);
    frames.retire(ring);
    assert.notEqual(frames.take(), null);
    assert.equal(frames.take(), null);
    assert.equal(frames.lost, lost);
  });
});

describe('a connection to a collector', () => {
  test('does a handshake, then messages, then a goodbye', async () => {
    const there = await collector('a.sock');
    const out = await outgoing(unix('a.sock'));
    fill(out.frames.add(1 << 16), 0, 100);
    await until(() => there.messages.length === 100, 'all messages');
    assert.deepEqual(
      there.messages.map(({ extra }) => extra),
      numbers(0, 100),
    );
    await out.close();
    await until(() => there.readers[0]!.controls.length === 3, 'the goodbye');
    assert.deepEqual(there.readers[0]!.controls, [CONTROL.READY, CONTROL.START, CONTROL.STOP]);
    assert.deepEqual([out.lost, out.written], [0, 100]);
  });

  test('queues messages for the first connection, and between connections', async () => {
    const out = await outgoing(unix('b.sock'));
    const ring = out.frames.add(1 << 16);
    fill(ring, 0, 50);
    await until(() => lines.length > 0, 'a line');
    assert.match(lines[0]!, /^\[ERROR\] No connection to dnstap endpoint: no such file/);
    const first = await collector('b.sock');
    await until(() => first.messages.length === 50, 'the first messages');
    await first.close();
    await until(() => out.connections === 0, 'the end of the connection');
    fill(ring, 50, 80);
    const second = await collector('b.sock');
    await until(() => second.messages.length === 30, 'the second messages');
    assert.equal(out.lost, 0);
    assert.ok(lines.some((line) => line.includes('Connected to dnstap endpoint b.sock again')));
  });

  test('loses and counts frames if the collector does not read, and uses no memory beyond the buffers', async () => {
    const there = await collector('c.sock');
    const out = await outgoing(unix('c.sock'));
    const ring = out.frames.add(1 << 16);
    await until(() => out.connections === 1, 'the connection');
    there.sockets[0]!.pause();
    let written = 0;
    for (let round = 0; round < 400 && out.lost === 0; round++) {
      fill(ring, written, written + 2000);
      written += 2000;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    assert.ok(out.lost > 0);
    there.sockets[0]!.resume();
    await until(() => there.messages.length === written - out.lost, 'the rest');
  });

  test('is closed if the collector accepts and says nothing', async () => {
    await collector('d.sock', false);
    await outgoing(unix('d.sock'));
    await until(() => lines.length > 0, 'a line');
    assert.match(lines[0]!, /no answer to the handshake/);
  });
});

describe('a listener for sinks', () => {
  test('sends every sink all messages from when it connected', async () => {
    const into = new Incoming(unix('e.sock', true), null, false, systemClock, log);
    closing.push(into);
    into.start();
    const ring = into.frames.add(1 << 16);
    const sinks: DnstapReader[] = [];
    for (const round of [1, 2]) {
      sinks.push(new DnstapReader(connect({ path: join(directory, 'e.sock') })));
      await until(() => sinks.at(-1)!.controls.includes(CONTROL.START), `sink ${round}`);
      fill(ring, round * 10, round * 10 + 10);
      await until(() => sinks[0]!.messages.length === round * 10, 'messages');
    }
    await until(() => sinks[1]!.messages.length === 10, 'messages of the second');
    assert.deepEqual(
      sinks.map(({ messages }) => messages.map(({ extra }) => extra)),
      [numbers(10, 30), numbers(20, 30)],
    );
  });

  test('disconnects a sink that does not keep up, but not the others', async () => {
    const into = new Incoming(unix('f.sock', true), null, false, systemClock, log);
    closing.push(into);
    into.start();
    const ring = into.frames.add(1 << 20);
    const path = join(directory, 'f.sock');
    const good = new DnstapReader(connect({ path }));
    const lame = connect({ path });
    const slow = new DnstapReader(lame);
    await until(() => good.controls.length + slow.controls.length === 4, 'both');
    lame.pause();
    let written = 0;
    for (let round = 0; round < 400 && into.connections === 2; round++) {
      fill(ring, written, written + 2000);
      written += 2000;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    assert.ok(lines.some((line) => line.includes('cannot keep up')));
    await until(() => good.messages.length === written, 'all for the other');
    lame.destroy();
  });

  test('disconnects, at the limit, a sink without a handshake or else the first one, never the newest', async () => {
    const into = new Incoming(unix('h.sock', true), null, false, new VirtualClock(), log);
    closing.push(into);
    into.start();
    const path = join(directory, 'h.sock');
    const gone: number[] = [];
    const sockets: Socket[] = [];
    const come = async (greets: boolean): Promise<void> => {
      const socket = connect({ path });
      const nth = sockets.push(socket) - 1;
      socket.on('error', () => undefined).on('close', () => gone.push(nth));
      if (!greets) {
        await until(() => socket.resume().bytesRead > 0, 'the greeting');
        return;
      }
      const sink = new DnstapReader(socket);
      await until(() => sink.controls.includes(CONTROL.START), `sink ${nth}`);
    };
    await come(true);
    await come(false);
    for (let i = 2; i < 64; i++) await come(true);
    assert.deepEqual(gone, []);
    await come(true);
    await until(() => gone.length === 1, 'the silent one to go');
    await come(true);
    await until(() => gone.length === 2, 'the first one to go');
    assert.deepEqual([gone, into.connections, into.evicted], [[1, 0], 64, 2]);
    // The log has only one line every ten seconds, even if many collectors disconnect.
    assert.deepEqual(
      lines.filter((line) => line.includes('more than 64')),
      ['[WARNING] more than 64 dnstap clients: disconnecting the longest-idle one'],
    );
    for (const socket of sockets) socket.destroy();
  });

  test('takes over a socket file without a listener', async () => {
    const path = join(directory, 'g.sock');
    writeFileSync(path, '');
    rmSync(path);
    const before = new Incoming(unix('g.sock', true), null, false, systemClock, log);
    before.start();
    await until(() => connectable(path), 'the first');
    const next = new Incoming(unix('g.sock', true), null, false, systemClock, log);
    closing.push(next);
    next.start();
    await until(() => lines.length > 0, 'a line');
    assert.match(
      lines[0]!,
      /Failed to start dnstap listener: listen g\.sock: another process uses the address/,
    );
    await before.close();
    await until(() => lines.some((line) => line.includes('listener started')), 'the second');
  });
});

describe('dnstap over TLS', () => {
  const tlsAt = (port: number, listen = false): DnstapEndpoint => ({
    ...unix(`tls://127.0.0.1:${port}`, listen),
    kind: 'tls',
    path: '',
    host: '127.0.0.1',
    port,
  });

  /** A collector that completes only the TCP connection. */
  async function listening(take: (socket: Socket) => void): Promise<number> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      take(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push({ close: async () => void server.close() });
    return (server.address() as AddressInfo).port;
  }

  test('a silent collector is disconnected after the handshake time, reported once, and tried again', async () => {
    const sockets: Socket[] = [];
    const port = await listening((socket) => sockets.push(socket.resume()));
    const clock = new VirtualClock();
    const made = new Outgoing(tlsAt(port), false, clock, secureRandom, log);
    closing.push(made);
    made.start();
    for (let round = 1; round <= 3; round++) {
      await until(() => sockets.length === round, `connection ${round}`);
      await clock.advance(4001);
      await until(() => sockets[round - 1]!.closed, 'its end');
      // The longest wait before the third attempt.
      await clock.advance(700);
    }
    assert.deepEqual(lines, ['[ERROR] No connection to dnstap endpoint: i/o timeout']);
  });

  test('a connection that ends during the handshake is retried at increasing intervals', async () => {
    let count = 0;
    const port = await listening((socket) => {
      count++;
      socket.once('data', () => socket.destroy());
    });
    const made = new Outgoing(tlsAt(port), false, systemClock, secureRandom, log);
    closing.push(made);
    made.start();
    await until(() => count >= 3, 'three tries');
    assert.equal(lines.length, 1);
    assert.match(
      lines[0]!,
      /No connection to dnstap endpoint: (?:the other side dropped|.*disconnected)/,
    );
    assert.equal(made.connections, 0);
  });

  test('an expired certificate is rejected and reported, and a valid one from a known CA is accepted', async (t) => {
    const authority = Authority.make('dnstap test');
    const before = getCACertificates('default');
    setDefaultCACertificates([authority.identity.cert]);
    t.after(() => setDefaultCACertificates(before));
    const day = 24 * 3600_000;
    const now = Date.now();
    const expired = authority.issue('c', ['127.0.0.1'], new Date(now - 5 * day), now - 10 * day);
    const good = authority.issue('c', ['127.0.0.1'], new Date(now + day), now);
    for (const [identity, skip, text] of [
      [expired, false, /certificate has expired/],
      [expired, true, null],
      [good, false, null],
    ] as const) {
      const collector = await DnstapCollector.listen({ tls: identity });
      const made = new Outgoing(tlsAt(collector.port), skip, systemClock, secureRandom, log);
      closing.push(made);
      made.start();
      await until(() => (text === null ? made.connections === 1 : lines.length > 0), 'an outcome');
      if (text === null) assert.deepEqual(lines, []);
      else assert.match(lines[0]!, text);
      await made.close();
      await collector.close();
      lines = [];
    }
  });

  test('sinks that never complete the handshake are limited, and do not block others or the shutdown', async () => {
    const [port] = await freePorts(1);
    const files = { cert: Buffer.from(testCertificate), key: Buffer.from(testKey), ca: null };
    const into = new Incoming(tlsAt(port, true), files, false, systemClock, log);
    closing.push(into);
    into.start();
    const silent: Socket[] = [];
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      silent.push(socket.resume());
      await new Promise((resolve) => socket.once('connect', resolve));
    }
    await until(
      () => silent.filter((socket) => socket.closed).length >= 36,
      'the first ones to go',
    );
    const sink = new DnstapReader(connectTls({ host: '127.0.0.1', port, ca: testCertificate }));
    await until(() => sink.controls.includes(CONTROL.START), 'a sink');
    await into.close();
    await until(() => silent.every((socket) => socket.closed), 'all to go');
  });

  test('a renewed certificate is used after a reload', async (t) => {
    const [port] = await freePorts(1);
    const authority = Authority.make('dnstap test');
    const identities = ['one', 'two'].map((name) =>
      authority.issue(name, ['127.0.0.1'], new Date(Date.now() + 3600_000), Date.now()),
    );
    const put = ({ cert, key }: { cert: string; key: string }): void => {
      writeFileSync(join(directory, 'renewed.pem'), cert);
      writeFileSync(join(directory, 'renewed.key'), key);
    };
    put(identities[0]!);
    const corefile = (more: string): string =>
      `.:53 {\n reload\n dnstap listen tls://127.0.0.1:${port} {\n tls renewed.pem renewed.key\n }\n ${more}\n whoami\n}`;
    const world = await makeWorld(corefile(''), { directory, clock: new VirtualClock() });
    t.after(() => world.close());
    const subject = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
          resolve(String(socket.getPeerX509Certificate()?.subject));
          socket.destroy();
        });
        socket.on('error', reject);
      });
    assert.equal(await subject(), 'CN=one');
    put(identities[1]!);
    world.setCorefile(corefile('errors'));
    assert.ok(await world.server.reload());
    assert.equal(await subject(), 'CN=two');
    writeFileSync(join(directory, 'renewed.pem'), identities[0]!.cert.slice(0, 300));
    world.setCorefile(corefile('log'));
    assert.equal(await world.server.reload(), false);
    assert.equal(await subject(), 'CN=two');
  });
});

let asked: Promise<void> | null = null;
let open = false;

/** True if something listens on the path, as checked from another process. */
function connectable(path: string): boolean {
  asked ??= new Promise<void>((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      open = true;
      socket.destroy();
    });
    socket.once('error', () => undefined);
    socket.once('close', () => {
      asked = null;
      resolve();
    });
  });
  return open;
}

describe('dnstap: the directive', () => {
  writeFileSync(join(directory, 'cert.pem'), testCertificate);
  writeFileSync(join(directory, 'key.pem'), testKey);
  const problem = async (text: string): Promise<string> => {
    try {
      const world = await makeWorld(`.:53 {\n ${text}\n whoami\n}`, { directory });
      await world.close();
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  for (const text of [
    'dnstap dnstap.sock full',
    'dnstap unix://dnstap.sock',
    'dnstap tcp://127.0.0.1:6000',
    'dnstap tcp://[::1]:6000',
    'dnstap tcp://example.com:6000',
    'dnstap tls://127.0.0.1:6000 {\n skipverify\n }',
    'dnstap dnstap.sock full {\n identity NAME\n version VER\n extra EXTRA\n }',
    'dnstap a.sock full\n dnstap tcp://127.0.0.1:6000 {\n identity NAME2\n }',
    'dnstap dnstap.sock full 1024 2048',
    'dnstap listen tcp://127.0.0.1:0',
    'dnstap listen unix://listen.sock full',
    // CoreDNS ignores these words, and without a certificate it cannot serve TLS clients.
    'dnstap a.sock fill',
    'dnstap a.sock full 1 1 more',
    'dnstap listen tls://:1',
    'dnstap listen unix://listen.sock {\n tls nothing nowhere\n }',
    'dnstap listen tls://127.0.0.1:0 full {\n tls cert.pem key.pem cert.pem\n skipverify\n }',
  ]) {
    test(`accepted: ${text.replaceAll('\n', '')}`, async () => {
      assert.equal(await problem(text), '');
    });
  }

  for (const [text, message] of [
    ['dnstap', /Wrong argument count/],
    ['dnstap {\n identity NAME\n }', /Unexpected token '\{', expecting argument/],
    ['dnstap a.sock {\n identity\n }', /Wrong argument count/],
    ['dnstap a.sock {\n identitiy NAME\n }', /unknown property 'identitiy'/],
    [
      'dnstap a.sock full 1025 1',
      /MultipleTcpWriteBuf must be between 1 and 1024 \(MiB units\): 1025/,
    ],
    ['dnstap a.sock full 1 4097', /MultipleQueue must be between 1 and 4096/],
    ['dnstap a.sock full 0 10', /must be between/],
    ['dnstap a.sock full x 10', /invalid MultipleTcpWriteBuf "x"/],
    ['dnstap a.sock full 10 y', /invalid MultipleQueue "y"/],
    ['dnstap listen', /dnstap listen requires an endpoint argument/],
    ['dnstap tcp://127.0.0.1', /missing port in address/],
    ['dnstap a.sock {\n tls cert.pem key.pem\n }', /tls directive only valid for listeners/],
    ['dnstap listen tls://:1 {\n tls cert.pem\n }', /tls requires cert and key file paths/],
    ['dnstap listen tls://:1 {\n tls cert.pem gone.pem\n }', /could not load TLS cert/],
    ['dnstap listen tls://:1 {\n tls key.pem key.pem\n }', /could not load TLS cert/],
  ] as const) {
    test(`rejected: ${text.replaceAll('\n', '')}`, async () => {
      assert.match(await problem(text), message);
    });
  }
});
