import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';

import fc from 'fast-check';

import { testTls } from '../../../../test/kit/certificate.ts';
import {
  frame,
  Http2Client,
  literals,
  preface,
  requestFields,
} from '../../../../test/kit/http2-client.ts';
import { answerOne, listenerParts, queryBytes, replyWith } from '../../../../test/kit/loopback.ts';
import { httpsListener } from '../https/https.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { Serve } from '../listener.ts';
import type { StreamListener } from '../stream/stream-listener.ts';
import { ERROR, FLAG, FRAME, SETTING } from './frames.ts';

async function start(
  t: TestContext,
  serve: Serve = answerOne,
  limits: Partial<ListenerLimits> = {},
): Promise<StreamListener> {
  const listener = httpsListener(listenerParts(serve, { scheme: 'https' }, limits, testTls));
  await listener.open();
  t.after(() => listener.close(0));
  return listener;
}

async function client(
  t: TestContext,
  { port }: StreamListener,
  settings: readonly (readonly [number, number])[] = [],
): Promise<Http2Client> {
  const made = await Http2Client.open(port, settings);
  t.after(() => made.close());
  return made;
}

const whole = FLAG.END_HEADERS | FLAG.END_STREAM;

/** The HEADERS frame of a GET that queries an address. */
function get(id: number, name = 'a.', flags = whole): Buffer {
  const path = `/dns-query?dns=${queryBytes(name, 0).toString('base64url')}`;
  return frame(FRAME.HEADERS, flags, id, literals(requestFields('GET', path)));
}

/** The HEADERS of a POST. */
function post(id: number, more: readonly (readonly [string, string])[] = []): Buffer {
  const block = literals(requestFields('POST', '/dns-query', more));
  return frame(FRAME.HEADERS, FLAG.END_HEADERS, id, block);
}

/** The HEADERS frame of a GET with forbidden fields. */
function malformed(more: readonly (readonly [string, string])[]): Buffer {
  return frame(FRAME.HEADERS, whole, 1, literals(requestFields('GET', '/dns-query', more)));
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Waits for the reply on a stream and returns the number of addresses in it. */
async function addresses(made: Http2Client, id: number, waitMs?: number): Promise<number> {
  const body: Buffer[] = [];
  for (;;) {
    const data = await made.next([FRAME.DATA], waitMs);
    assert.ok(data !== null, `stream ${id}: no reply`);
    assert.equal(data.id, id);
    body.push(data.payload);
    if ((data.flags & FLAG.END_STREAM) !== 0) return Buffer.concat(body).readUInt16BE(6);
  }
}

/** Returns the error code with which the server closes the connection. */
async function goneFor(made: Http2Client): Promise<number | null> {
  const goaway = await made.next([FRAME.GOAWAY]);
  return goaway === null ? null : goaway.payload.readUInt32BE(4);
}

/** Returns the error code with which the server closes a stream. */
async function resetFor(made: Http2Client): Promise<number | null> {
  const reset = await made.next([FRAME.RST_STREAM]);
  return reset === null ? null : reset.payload.readUInt32BE(0);
}

describe('HTTP/2', () => {
  test('header and body of a reply arrive together, and the body ends the stream', async (t) => {
    const made = await client(t, await start(t));
    made.send(get(1));
    const headers = await made.next([FRAME.HEADERS, FRAME.DATA]);
    const data = await made.next([FRAME.HEADERS, FRAME.DATA]);
    assert.equal(headers!.type, FRAME.HEADERS);
    assert.equal(data!.type, FRAME.DATA);
    assert.equal(data!.flags, FLAG.END_STREAM);
    assert.equal(data!.payload.readUInt16BE(6), 1);
  });

  for (const [how, records] of [
    ['one at a time gets each reply in a TLS record of its own', 10],
    ['several in one record gets their replies in one', 1],
  ] as const) {
    test(`a client that asks ${how}`, async (t) => {
      const release: (() => void)[] = [];
      const listener = await start(t, (query) => {
        const kept = query.keep();
        return new Promise((resolve) => release.push(() => resolve(replyWith(kept))));
      });
      const made = await client(t, listener);
      await made.next([FRAME.SETTINGS]);
      await made.next([FRAME.SETTINGS]);
      const requests = Array.from({ length: 10 }, (_, i) => get(2 * i + 1));
      if (records === 1) made.send(...requests);
      for (let i = 0; i < 10; i++) {
        if (records > 1) made.send(requests[i]!);
        while (release.length <= i) await pause(1);
      }
      made.records.length = 0;
      for (const answer of release) answer();
      for (let i = 0; i < 10; i++) assert.ok(await made.next([FRAME.DATA]));
      assert.deepEqual(made.records, Array(records).fill(20 / records));
    });
  }

  test('however a client splits its bytes, all its requests are answered', async (t) => {
    const listener = await start(t);
    const path = `/dns-query?dns=${queryBytes('c.', 0).toString('base64url')}`;
    const block = literals(requestFields('GET', path));
    const bytes = Buffer.concat([
      preface,
      frame(FRAME.SETTINGS, 0, 0),
      get(1),
      post(3),
      frame(FRAME.DATA, 0, 3, queryBytes('b.').subarray(0, 9)),
      frame(FRAME.PING, 0, 0, Buffer.alloc(8, 7)),
      frame(FRAME.DATA, FLAG.END_STREAM, 3, queryBytes('b.').subarray(9)),
      frame(FRAME.HEADERS, FLAG.END_STREAM, 5, block.subarray(0, 20)),
      frame(FRAME.CONTINUATION, 0, 5, block.subarray(20, 21)),
      frame(FRAME.CONTINUATION, FLAG.END_HEADERS, 5, block.subarray(21)),
      frame(0x7b, 0xff, 1, Buffer.from('a frame of a kind that nobody knows')),
      get(7),
    ]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async (cuts) => {
        const made = await Http2Client.connect(listener.port);
        const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        for (let i = 1; i < places.length; i++) {
          made.socket.write(bytes.subarray(places[i - 1], places[i]));
          if (i % 3 === 0) await pause(0);
        }
        for (const id of [1, 3, 5, 7]) assert.equal(await addresses(made, id), 1);
        const pong = await made.next([FRAME.PING]);
        assert.equal(pong!.flags, FLAG.ACK);
        assert.deepEqual([...pong!.payload], Array(8).fill(7));
        made.close();
      }),
      { numRuns: 30 },
    );
  });

  test('the listener keeps serving whatever bytes arrive', async (t) => {
    const listener = await start(t);
    const real = Buffer.concat([get(1), post(3), frame(FRAME.SETTINGS, 0, 0), get(5)]);
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.tuple(fc.nat(real.length - 1), fc.nat(255)).map(([at, value]) => {
        const bytes = Buffer.from(real);
        bytes[at] = value;
        return bytes;
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 6 }), async (pieces) => {
        const made = await Http2Client.open(listener.port);
        for (const bytes of pieces) made.socket.write(bytes);
        await made.next([FRAME.PING], 5);
        made.close();
      }),
      { numRuns: 100 },
    );
    const honest = await client(t, listener);
    honest.send(get(1));
    assert.equal(await addresses(honest, 1), 1);
    while (listener.counters.connections.value > 1) await pause(1);
  });

  test("a reply is sent in pieces as the client's window allows", async (t) => {
    const listener = await start(t, (query) => replyWith(query, 4000));
    const made = await client(t, listener, [[SETTING.INITIAL_WINDOW_SIZE, 0]]);
    made.send(get(1));
    assert.equal((await made.next([FRAME.HEADERS]))!.id, 1);
    assert.equal(await made.next([FRAME.DATA], 50), null);
    made.send(frame(FRAME.WINDOW_UPDATE, 0, 1, word(100)));
    assert.equal((await made.next([FRAME.DATA]))!.payload.length, 100);
    assert.equal(await made.next([FRAME.DATA], 50), null);
    made.send(
      frame(FRAME.SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, 4), word(1 << 20)])),
      frame(FRAME.WINDOW_UPDATE, 0, 0, word(1 << 20)),
    );
    let rest = 0;
    for (let data = await made.next([FRAME.DATA]); data !== null;) {
      assert.ok(data.payload.length <= 16_384);
      rest += data.payload.length;
      data = (data.flags & FLAG.END_STREAM) !== 0 ? null : await made.next([FRAME.DATA]);
    }
    assert.equal(rest + 100, queryBytes('a.').length + 16 * 4000);
  });

  test('a cancelled reply is not sent, and counts until it arrives', async (t) => {
    const release: (() => void)[] = [];
    const listener = await start(
      t,
      (query) => {
        const kept = query.keep();
        return new Promise((resolve) => release.push(() => resolve(replyWith(kept))));
      },
      { pipelined: 4 },
    );
    const made = await client(t, listener);
    for (let i = 0; i < 3; i++) {
      made.send(get(2 * i + 1), frame(FRAME.RST_STREAM, 0, 2 * i + 1, word(ERROR.CANCEL)));
    }
    made.send(get(7), get(9));
    await pause(50);
    assert.equal(release.length, 4, 'resetting streams buys no room');
    for (const answer of release) answer();
    assert.equal(await addresses(made, 7), 1);
    while (release.length < 5) await pause(1);
    release[4]!();
    assert.equal(await addresses(made, 9), 1);
    assert.equal(listener.counters.dropped.value, 3);
  });

  for (const [what, request, settings] of [
    ['replies that may not leave', get, [[SETTING.INITIAL_WINDOW_SIZE, 0]]],
    ['requests whose bodies do not come', post, []],
  ] as const) {
    test(`${what} are bounded over all connections, however small they are`, async (t) => {
      const listener = await start(t, answerOne, { heldBytes: 256 * 1024 });
      for (let n = 0; n < 4; n++) {
        const made = await client(t, listener, settings);
        made.send(...Array.from({ length: 100 }, (_, i) => request(2 * i + 1)));
      }
      // Two of the four have room.
      while (listener.counters.evicted.value < 2) await pause(1);
      const fresh = await client(t, listener);
      fresh.send(get(1));
      assert.equal(await addresses(fresh, 1), 1);
    });
  }

  test('requests beyond the concurrency limit are refused individually', async (t) => {
    const listener = await start(t, () => new Promise(() => {}), { streams: 2 });
    const made = await client(t, listener);
    made.send(get(1), get(3), get(5));
    const reset = await made.next([FRAME.RST_STREAM]);
    assert.equal(reset!.id, 5);
    assert.equal(reset!.payload.readUInt32BE(0), ERROR.REFUSED_STREAM);
  });

  test('padding, priorities, trailers and early stream ends are understood', async (t) => {
    const made = await client(t, await start(t));
    const path = `/dns-query?dns=${queryBytes('a.', 0).toString('base64url')}`;
    const block = literals(requestFields('GET', path));
    const weighed = Buffer.concat([Buffer.of(3, 0, 0, 0, 9, 16), block, Buffer.alloc(3)]);
    made.send(
      frame(FRAME.PRIORITY, 0, 9, Buffer.of(0, 0, 0, 0, 1)),
      frame(FRAME.HEADERS, whole | FLAG.PADDED | FLAG.PRIORITY, 1, weighed),
    );
    assert.equal(await addresses(made, 1), 1);
    const padded = Buffer.concat([Buffer.of(5), queryBytes('b.'), Buffer.alloc(5)]);
    made.send(
      post(3),
      frame(FRAME.DATA, FLAG.PADDED, 3, padded),
      frame(FRAME.HEADERS, whole, 3, literals([['x-checksum', '1']])),
    );
    assert.equal((await made.next([FRAME.WINDOW_UPDATE]))!.id, 0);
    assert.deepEqual((await made.next([FRAME.WINDOW_UPDATE]))!.payload, word(6));
    assert.equal(await addresses(made, 3), 1);
    made.send(post(5), frame(FRAME.RST_STREAM, 0, 5, word(ERROR.CANCEL)), get(7));
    assert.equal(await addresses(made, 7), 1);
  });

  for (const [what, status, ...frames] of [
    ['another path', 404, frame(1, whole, 1, literals(requestFields('GET', '/')))],
    ['another method', 400, frame(1, whole, 1, literals(requestFields('PUT', '/dns-query')))],
    [
      'a POST without a body',
      400,
      frame(1, whole, 1, literals(requestFields('POST', '/dns-query'))),
    ],
    ['a body that is no query', 400, post(1), frame(FRAME.DATA, FLAG.END_STREAM, 1, preface)],
    ['a body that says it is too long', 400, post(1, [['content-length', '70000']])],
    [
      'a header with more than was announced',
      431,
      malformed(Array.from({ length: 300 }, () => ['x-name', 'v'.repeat(20)] as const)),
    ],
  ] as const) {
    test(`${what} is ${status}, and the next request is answered`, async (t) => {
      const made = await client(t, await start(t));
      made.send(...frames);
      const headers = await made.next([FRAME.HEADERS]);
      assert.equal(headers!.flags, whole);
      assert.match(headers!.payload.toString('latin1'), new RegExp(`${status}$`));
      made.send(get(3));
      assert.equal(await addresses(made, 3), 1);
    });
  }

  for (const [what, error, ...frames] of [
    ['a field in capitals', ERROR.PROTOCOL_ERROR, malformed([['X-Y', '1']])],
    ['a field of the connection', ERROR.PROTOCOL_ERROR, malformed([['connection', 'close']])],
    [
      'a pseudo field behind others',
      ERROR.PROTOCOL_ERROR,
      malformed([
        ['x', '1'],
        [':path', '/'],
      ]),
    ],
    [
      'a body of another length',
      ERROR.PROTOCOL_ERROR,
      post(1, [['content-length', '3']]),
      frame(FRAME.DATA, FLAG.END_STREAM, 1, Buffer.alloc(4)),
    ],
  ] as const) {
    test(`${what} ends the stream but not the connection`, async (t) => {
      const made = await client(t, await start(t));
      made.send(...frames);
      assert.equal(await resetFor(made), error);
      made.send(get(3));
      assert.equal(await addresses(made, 3), 1);
    });
  }

  for (const [what, error, ...frames] of [
    [
      'a frame longer than allowed',
      ERROR.FRAME_SIZE_ERROR,
      frame(FRAME.DATA, 0, 1, Buffer.alloc(16_385)),
    ],
    [
      'a header block that is none',
      ERROR.COMPRESSION_ERROR,
      frame(FRAME.HEADERS, whole, 1, Buffer.of(0x80)),
    ],
    [
      'a header block without end',
      ERROR.ENHANCE_YOUR_CALM,
      frame(FRAME.HEADERS, 0, 1),
      ...Array.from({ length: 40 }, () => frame(FRAME.CONTINUATION, 0, 1, Buffer.alloc(1000))),
    ],
    [
      'another frame amid a header block',
      ERROR.PROTOCOL_ERROR,
      frame(FRAME.HEADERS, 0, 1),
      frame(FRAME.PING, 0, 0, Buffer.alloc(8)),
    ],
    [
      'data on a stream that was never opened',
      ERROR.PROTOCOL_ERROR,
      frame(FRAME.DATA, 0, 1, Buffer.alloc(1)),
    ],
    ['a stream of the server', ERROR.PROTOCOL_ERROR, get(2)],
    [
      'a window of more than 31 bits',
      ERROR.FLOW_CONTROL_ERROR,
      frame(FRAME.WINDOW_UPDATE, 0, 0, word(0x7fffffff)),
    ],
  ] as const) {
    test(`${what} ends the connection, with the reason`, async (t) => {
      const made = await client(t, await start(t));
      made.send(...frames);
      assert.equal(await goneFor(made), error);
      assert.equal(await made.next([FRAME.DATA]), null);
    });
  }

  test('a connection that does not begin as HTTP/2 is closed', async (t) => {
    const made = await Http2Client.connect((await start(t)).port);
    t.after(() => made.close());
    made.socket.write('GET /dns-query HTTP/1.1\r\n\r\n');
    assert.equal(await goneFor(made), ERROR.PROTOCOL_ERROR);
  });

  test('at the limit, the longest idle connection is closed and the new one is served', async (t) => {
    const listener = await start(t, answerOne, { connections: 3 });
    for (let i = 0; i < 6; i++) {
      const made = await client(t, listener);
      made.send(get(1));
      assert.equal(await addresses(made, 1), 1);
    }
    assert.equal(listener.counters.evicted.value, 3);
    assert.equal(listener.counters.connections.value, 3);
  });

  test('a flood of immediately reset requests does not delay others', async (t) => {
    let served = 0;
    const listener = await start(t, (query) => {
      served++;
      return answerOne(query);
    });
    const honest = await client(t, listener);
    const attackers = await Promise.all(Array.from({ length: 10 }, () => client(t, listener)));
    let id = 1;
    const volley = (): Buffer =>
      Buffer.concat(
        Array.from({ length: 500 }, () => {
          id += 2;
          return Buffer.concat([get(id), frame(FRAME.RST_STREAM, 0, id, word(ERROR.CANCEL))]);
        }),
      );
    for (let round = 0; round < 5; round++) {
      const bytes = volley();
      for (const attacker of attackers) attacker.socket.write(bytes);
    }
    // The listener determines how many others are served first. How long that takes depends on the machine.
    const before: number[] = [];
    for (let i = 0; i < 10; i++) {
      const begun = served;
      honest.send(get(2 * i + 1));
      assert.equal(await addresses(honest, 2 * i + 1, 60_000), 1);
      before.push(served - begun);
    }
    assert.ok(Math.max(...before) < 2500, `${before.join(' ')} of 25 000 came first`);
  });

  test('close sends GOAWAY, answers requests in flight and accepts no more', async (t) => {
    const release: (() => void)[] = [];
    const listener = await start(t, (query) => {
      const kept = query.keep();
      return new Promise((resolve) => release.push(() => resolve(replyWith(kept))));
    });
    const made = await client(t, listener);
    made.send(get(1));
    while (release.length < 1) await pause(1);
    const closed = listener.close(2000);
    assert.equal(await goneFor(made), ERROR.NO_ERROR);
    made.send(get(3));
    assert.equal(await resetFor(made), ERROR.REFUSED_STREAM);
    release[0]!();
    assert.equal(await addresses(made, 1), 1);
    await closed;
  });
});
