import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket as Udp } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { seededRandom } from '../../src/server/base/random.ts';
import { FLAG, TYPE, RCODE } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage } from '../../src/server/wire/message.ts';
import { freePorts } from '../kit/free-ports.ts';
import { framed, queryBytes, StreamClient, UdpClient } from '../kit/loopback.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const random = seededRandom(77);

interface Mistakes {
  readonly id?: number;
  readonly name?: string;
  readonly type?: number;
  readonly flags?: number;
  readonly addresses?: readonly string[];
  readonly questions?: number;
}

/** A reply to `query` with these errors. */
function reply(query: Buffer, mistakes: Mistakes): Buffer {
  const { id, question } = readMessage(query);
  const [asked] = question;
  const name = mistakes.name ?? asked!.name;
  const one = { name, type: mistakes.type ?? asked!.type, class: 1 };
  const bytes = Buffer.from(
    writeMessage({
      id: mistakes.id ?? id,
      flags: mistakes.flags ?? FLAG.QR | FLAG.RD | FLAG.RA,
      rcode: 0,
      question: Array.from({ length: mistakes.questions ?? 1 }, () => one),
      answer: (mistakes.addresses ?? []).map((address) => ({
        name,
        type: TYPE.A,
        class: 1,
        ttl: 60,
        data: { address },
      })),
      authority: [],
      additional: [],
      edns: null,
    }),
  );
  return bytes;
}

const truth = '192.0.2.1';
const lie = '203.0.113.66';

/** An upstream whose behaviour is controlled by a test, with UDP and TCP on the same port. */
class FakeUpstream {
  readonly udp: Udp;
  readonly tcp: Server;
  readonly streams = new Set<Socket>();
  port = 0;
  asked = 0;
  onQuery: (query: Buffer, send: (bytes: Uint8Array) => void, from: RemoteInfo) => void = () =>
    undefined;
  onStream: (query: Buffer, socket: Socket) => void = (query, socket) =>
    socket.write(framed(reply(query, { addresses: [truth] })));

  private constructor() {
    this.udp = createSocket('udp4');
    this.udp.on('message', (query, from) => {
      this.asked++;
      this.onQuery(query, (bytes) => this.udp.send(bytes, from.port, from.address), from);
    });
    this.tcp = createServer((socket) => {
      this.streams.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.streams.delete(socket));
      let pending = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        pending = Buffer.concat([pending, chunk]);
        while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
          const end = 2 + pending.readUInt16BE(0);
          this.onStream(pending.subarray(2, end), socket);
          pending = pending.subarray(end);
        }
      });
    });
  }

  static async open(): Promise<FakeUpstream> {
    const made = new FakeUpstream();
    [made.port] = await freePorts(1);
    made.tcp.listen(made.port, '127.0.0.1');
    await once(made.tcp, 'listening');
    made.udp.bind(made.port, '127.0.0.1');
    await once(made.udp, 'listening');
    return made;
  }

  async close(): Promise<void> {
    for (const socket of this.streams) socket.destroy();
    this.udp.close();
    await new Promise((resolve) => this.tcp.close(resolve));
  }
}

describe('an upstream, or an impostor, that lies', () => {
  let upstream: FakeUpstream;
  let server: ServeProcess;
  let client: UdpClient;
  let count = 0;
  before(async () => {
    upstream = await FakeUpstream.open();
    server = await serveProcess(`  errors
  cache 30
  forward . 127.0.0.1:${upstream.port} {
    max_fails 0
  }`);
    client = await UdpClient.open();
  });
  after(async () => {
    client.close();
    await server.stop();
    await upstream.close();
  });
  afterEach(() => {
    upstream.onQuery = () => undefined;
  });

  const fresh = (): string => `n${count++}.forged.test`;

  /** The addresses that a client gets for a name, or the response code of a reply without any. */
  async function ask(name: string): Promise<string[] | number> {
    client.send(queryBytes(name, 1000 + count), server.port);
    const got = await client.next(9000);
    assert.ok(got !== null, `no reply for ${name}`);
    const message = readMessage(got.bytes);
    assert.equal(message.question[0]!.name, `${name}.`, "the question is the client's");
    const found = message.answer.map(({ data }) => (data as { address: string }).address);
    return found.length > 0 ? found : message.rcode;
  }

  const forgeries: readonly (readonly [string, (query: Buffer) => Uint8Array])[] = [
    [
      'another id',
      (query) => reply(query, { id: (query.readUInt16BE(0) + 1) & 0xffff, addresses: [lie] }),
    ],
    ['another name', (query) => reply(query, { name: 'www.bank.test.', addresses: [lie] })],
    ['another type', (query) => reply(query, { type: TYPE.AAAA, addresses: [lie] })],
    ['the query itself sent back', (query) => query],
    ['no QR flag', (query) => reply(query, { flags: FLAG.RD, addresses: [lie] })],
    ['nothing', () => Buffer.alloc(0)],
    ['a lone id', (query) => query.subarray(0, 2)],
    ['noise', () => Uint8Array.from({ length: 120 }, () => random.integer(256))],
  ];
  for (const [what, forge] of forgeries) {
    test(`${what}: that reply is ignored, and the following correct one is used`, async () => {
      const name = fresh();
      upstream.onQuery = (query, send) => {
        send(forge(query));
        setTimeout(() => send(reply(query, { addresses: [truth] })), 30);
      };
      const got = await ask(name);
      assert.deepEqual(got, [truth]);
      assert.deepEqual(await ask(name), [truth], 'and the cache has that one');
    });
  }

  // As in CoreDNS, a reply with the correct ID but no readable question ends the wait, because it comes from a broken
  // upstream.
  for (const questions of [0, 2]) {
    test(`${questions} questions and an answer: SERVFAIL at once, and nothing of it is cached`, async () => {
      const name = fresh();
      upstream.onQuery = (query, send) => send(reply(query, { questions, addresses: [lie] }));
      assert.equal(await ask(name), RCODE.SERVFAIL);
      upstream.onQuery = (query, send) => send(reply(query, { addresses: [truth] }));
      assert.deepEqual(await ask(name), [truth]);
    });
  }

  test('the right reply from another port is ignored', async () => {
    const forger = createSocket('udp4');
    const name = fresh();
    upstream.onQuery = (query, send, from) => {
      forger.send(reply(query, { addresses: [lie] }), from.port, from.address);
      setTimeout(() => send(reply(query, { addresses: [truth] })), 30);
    };
    assert.deepEqual(await ask(name), [truth]);
    forger.close();
  });

  test('ten thousand guesses of the ID, sent to the right port, are not accepted', async () => {
    const name = fresh();
    let asked = 0;
    upstream.onQuery = (query, send) => {
      const id = query.readUInt16BE(0);
      // Retries only get the truth, because reading the guesses from one attempt is enough work.
      let guess = asked++ === 0 ? 1 : 10_001;
      const more = (): void => {
        for (const end = guess + 200; guess < end && guess <= 10_000; guess++)
          send(reply(query, { id: (id + guess) & 0xffff, addresses: [lie] }));
        if (guess <= 10_000) setTimeout(more, 1);
        else send(reply(query, { addresses: [truth] }));
      };
      more();
    };
    assert.deepEqual(await ask(name), [truth]);
  });

  test('broken bodies after a correct header are not used: the reply is fetched over TCP, or there is none', async () => {
    const broken: readonly ((query: Buffer) => Uint8Array)[] = [
      // A header that announces 65 535 answers, which are missing.
      (query) => {
        const bytes = reply(query, { addresses: [lie] });
        bytes.writeUInt16BE(65535, 6);
        return bytes;
      },
      // An owner that points to itself.
      (query) => {
        const head = reply(query, {});
        const bytes = Buffer.concat([
          head,
          Buffer.from([0xc0, head.length, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 66]),
        ]);
        bytes.writeUInt16BE(1, 6);
        return bytes;
      },
      // The data extends past the end of the message.
      (query) => {
        const bytes = Buffer.concat([
          reply(query, {}),
          Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 200, 203, 0]),
        ]);
        bytes.writeUInt16BE(1, 6);
        return bytes;
      },
      // An address of five bytes.
      (query) => {
        const bytes = Buffer.concat([
          reply(query, {}),
          Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 5, 203, 0, 113, 66, 1]),
        ]);
        bytes.writeUInt16BE(1, 6);
        return bytes;
      },
    ];
    for (const forge of broken) {
      upstream.onQuery = (query, send) => send(forge(query));
      upstream.onStream = (query, socket) =>
        socket.write(framed(reply(query, { addresses: [truth] })));
      const got = await ask(fresh());
      assert.ok(got === 2 || (Array.isArray(got) && got.join() === truth), String(got));
      upstream.onStream = (_, socket) => socket.resetAndDestroy();
      assert.equal(typeof (await ask(fresh())), 'number', 'a result code and no address');
    }
  });

  test('an upstream without a correct reply is abandoned after its time-out, and queried no more often than that', async () => {
    const before = upstream.asked;
    upstream.onQuery = (query, send) =>
      send(reply(query, { name: 'www.bank.test.', addresses: [lie] }));
    assert.equal(await ask(fresh()), 2);
    assert.ok(upstream.asked - before <= 10, `${upstream.asked - before} queries for one`);
  });

  test('a forged reply for one name does not affect another', async () => {
    assert.notDeepEqual(
      await (async () => {
        upstream.onQuery = (query, send) => send(reply(query, { addresses: [truth] }));
        return ask('www.bank.test');
      })(),
      [lie],
    );
  });

  test('source ports and IDs cannot be guessed: both change from query to query', async () => {
    const ports = new Set<number>();
    const ids: number[] = [];
    upstream.onQuery = (query, send, from) => {
      ports.add(from.port);
      ids.push(query.readUInt16BE(0));
      send(reply(query, { addresses: [truth] }));
    };
    for (let i = 0; i < 60; i++) assert.deepEqual(await ask(fresh()), [truth]);
    assert.ok(new Set(ids).size > 50, `${new Set(ids).size} ids`);
    const steps = new Set(ids.slice(1).map((id, i) => (id - ids[i]! + 65536) & 0xffff));
    assert.ok(steps.size > 40, 'ids do not count up');
    assert.ok(ports.size > 1, `${ports.size} source ports`);
  });

  describe('over TCP, after a truncated reply', () => {
    const truncated = (query: Buffer): Buffer =>
      reply(query, { flags: FLAG.QR | FLAG.RD | FLAG.RA | FLAG.TC });
    const manners: readonly (readonly [string, (query: Buffer, socket: Socket) => void])[] = [
      ['the connection is reset', (_, socket) => socket.resetAndDestroy()],
      ['half a length, then the end', (_, socket) => socket.end(Buffer.from([0x10]))],
      ['a length of zero', (_, socket) => socket.write(Buffer.from([0, 0]))],
      [
        'a long length and little behind it',
        (_, socket) => socket.write(Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(100)])),
      ],
      [
        'noise',
        (_, socket) => socket.write(Uint8Array.from({ length: 5000 }, () => random.integer(256))),
      ],
      [
        'another id',
        (query, socket) => socket.write(framed(reply(query, { id: 1, addresses: [lie] }))),
      ],
      [
        'another name',
        (query, socket) =>
          socket.write(framed(reply(query, { name: 'www.bank.test.', addresses: [lie] }))),
      ],
    ];
    for (const [what, behave] of manners) {
      test(`${what}: no lie reaches the client, which still gets a reply`, async () => {
        upstream.onQuery = (query, send) => send(truncated(query));
        upstream.onStream = behave;
        const got = await ask(fresh());
        assert.ok(typeof got === 'number', `${String(got)}`);
      });
    }

    test('an honest upstream is accepted again after all that', async () => {
      upstream.onQuery = (query, send) => send(truncated(query));
      upstream.onStream = (query, socket) =>
        socket.write(framed(reply(query, { addresses: [truth] })));
      assert.deepEqual(await ask(fresh()), [truth]);
    });
  });

  test('a flood of clients while upstream is silent is bounded: memory stays, and all is well when it speaks again', async () => {
    const flood = async (): Promise<void> => {
      const many = await UdpClient.open();
      for (let i = 0; i < 5000; i++) {
        many.send(queryBytes(`${fresh()}`, i), server.port);
        if (i % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 2));
      }
      await new Promise((resolve) => setTimeout(resolve, 6500));
      many.close();
    };
    await flood();
    const before = server.child.residentMiB();
    await flood();
    const rss = server.child.residentMiB();
    assert.ok(
      rss < before * 1.25 + 4,
      `${before.toFixed(1)} MiB before, ${rss.toFixed(1)} MiB after`,
    );
    upstream.onQuery = (query, send) => send(reply(query, { addresses: [truth] }));
    assert.deepEqual(await ask(fresh()), [truth]);
    const stream = await StreamClient.open(server.port);
    stream.send(queryBytes(fresh()));
    assert.equal((await stream.next())?.readUInt16BE(6), 1);
    stream.close();
  });

  test('none of it caused a panic', async () => {
    assert.equal(await server.sum('coredns_panics_total'), 0);
    assert.doesNotMatch(server.child.output(), /\s+at .*\.ts:\d+/);
  });
});
