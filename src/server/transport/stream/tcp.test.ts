import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';

import {
  StreamClient,
  answerOne,
  framed,
  listenerParts,
  queryBytes,
  replyWith,
} from '../../../../test/kit/loopback.ts';
import { systemClock } from '../../base/clock.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { Serve } from '../listener.ts';
import type { StreamListener } from './stream-listener.ts';
import { tcpListener } from './tcp.ts';

async function start(
  t: TestContext,
  serve: Serve,
  limits: Partial<ListenerLimits> = {},
): Promise<StreamListener> {
  const listener = tcpListener(listenerParts(serve, {}, limits));
  await listener.open();
  t.after(() => listener.close(0));
  return listener;
}

async function client(t: TestContext, listener: StreamListener): Promise<StreamClient> {
  const stream = await StreamClient.open(listener.port);
  t.after(() => stream.close());
  return stream;
}

/** The records of `replyWith`, encoded as for a name that is not at the end of the message. */
function replyBytes(count: number): Buffer {
  const records = Array.from({ length: count }, (_, i) =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 0, (i + 1) >> 8, (i + 1) & 0xff]),
  );
  return Buffer.concat(records);
}

const id = (message: Buffer | null): number => message?.readUInt16BE(0) ?? -1;

describe('TCP', () => {
  test('a query is answered with its id and question, preceded by the length', async (t) => {
    const stream = await client(t, await start(t, answerOne));
    stream.send(queryBytes('WWW.example.org.', 4711));
    const reply = await stream.next();
    assert.equal(id(reply), 4711);
    assert.equal(reply!.readUInt16BE(6), 1);
    assert.match(reply!.toString('latin1'), /WWW/);
  });

  test('pipelined queries are answered in order when all are ready', async (t) => {
    const stream = await client(t, await start(t, answerOne));
    const ids = Array.from({ length: 500 }, (_, i) => i + 1);
    stream.send(...ids.map((n) => queryBytes('a.example.', n)));
    for (const n of ids) assert.equal(id(await stream.next()), n);
  });

  test('a hundred connections with expensive queries have a limited share of each turn', async (t) => {
    // Each query takes 4 ms of this clock.
    let passed = 0;
    let turn = 0;
    const served: number[] = [];
    const slow: Serve = (query) => {
      passed += 4;
      served[turn] = (served[turn] ?? 0) + 1;
      return answerOne(query);
    };
    const clock = { ...systemClock, now: () => passed };
    const listener = tcpListener({ ...listenerParts(slow), clock });
    await listener.open();
    t.after(() => listener.close(0));
    const crowd = await Promise.all(Array.from({ length: 100 }, () => client(t, listener)));
    for (const one of crowd) one.send(...Array.from({ length: 20 }, (_, n) => queryBytes('a.', n)));
    const count = (): void => {
      turn++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    t.after(() => clearImmediate(next));
    for (const one of crowd) for (let n = 0; n < 20; n++) assert.equal(id(await one.next()), n);
    // Ten milliseconds for new input and ten for waiting input, each exceeded by at most four queries, plus one query
    // per connection. Without a time limit, there would be sixteen each.
    assert.ok(Math.max(...served.filter((queries) => queries > 0)) <= 100 + 2 * (3 + 4));
  });

  test('a client that joins a hundred pipelining, non-reading connections is accepted and answered before their queries', async (t) => {
    let served = 0;
    const listener = await start(t, (query) => {
      if (query.name === 'flood.') served++;
      return replyWith(query);
    });
    const crowd = await Promise.all(Array.from({ length: 100 }, () => client(t, listener)));
    for (const { socket } of crowd) socket.pause();
    const many = Array.from({ length: 2000 }, (_, n) => queryBytes('flood.', n));
    for (const one of crowd) one.send(...many);
    while (served < 2000) await new Promise((resolve) => setImmediate(resolve));
    const before = served;
    const newcomer = await client(t, listener);
    newcomer.send(queryBytes('honest.', 7));
    assert.equal(id(await newcomer.next()), 7);
    // By then, each of the hundred had at least a thousand in a chunk in memory.
    assert.ok(served - before < 8000, `${served - before} others came before`);
  });

  test('connections that send 64 KiB messages are read in turns: each turn of the event loop reads from only a few', async (t) => {
    const listener = await start(t, answerOne);
    let most = 0;
    let [taken, sockets] = [0, [] as Socket[]];
    const received = (): number => listener.counters.received.value;
    for (let i = 0; i < 12; i++) {
      const socket = connect({ port: listener.port, host: '127.0.0.1' });
      t.after(() => socket.destroy());
      await once(socket, 'connect');
      sockets = [...sockets, socket];
    }
    // Their messages are in the system's buffers before any is read, and all are read in this turn.
    const message = framed(Buffer.alloc(65_535, 0x80));
    for (const socket of sockets) for (let i = 0; i < 40; i++) socket.write(message);
    const begun = received();
    while (taken < 12 * 40) {
      await new Promise((resolve) => setImmediate(resolve));
      const now = received() - begun;
      most = Math.max(most, now - taken);
      taken = now;
    }
    assert.ok(most <= 24, `${most} in one turn`);
  });

  test('a connection whose turn is late does not time out first', async (t) => {
    const serve: Serve = (query) => {
      const until = performance.now() + 0.2;
      while (performance.now() < until);
      return replyWith(query);
    };
    const listener = await start(t, serve, { readTimeoutMs: 5000, idleTimeoutMs: 200 });
    const crowd = await Promise.all(Array.from({ length: 20 }, () => client(t, listener)));
    for (const one of crowd)
      one.send(...Array.from({ length: 200 }, (_, n) => queryBytes('late.', n)));
    for (const one of crowd)
      for (let n = 0; n < 200; n++) assert.equal(id(await one.next(60_000)), n);
  });

  test('a pending reply does not delay the ones after it', async (t) => {
    let release = (): void => {};
    const serve: Serve = (query) => {
      if (!query.name.startsWith('slow')) return replyWith(query);
      const kept = query.keep();
      return new Promise<Reply>((resolve) => {
        release = () => resolve(replyWith(kept));
      });
    };
    const stream = await client(t, await start(t, serve));
    stream.send(queryBytes('slow.example.', 1), queryBytes('fast.example.', 2));
    assert.equal(id(await stream.next()), 2);
    release();
    assert.equal(id(await stream.next()), 1);
  });

  test('a query may arrive byte by byte, and two in one segment with half of a third', async (t) => {
    const stream = await client(t, await start(t, answerOne));
    stream.socket.setNoDelay(true);
    for (const byte of framed(queryBytes('bytes.example.', 7))) {
      stream.socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(id(await stream.next()), 7);
    const three = Buffer.concat([8, 9, 10].map((n) => framed(queryBytes('x.example.', n))));
    stream.socket.write(three.subarray(0, three.length - 9));
    assert.equal(id(await stream.next()), 8);
    assert.equal(id(await stream.next()), 9);
    stream.socket.write(three.subarray(three.length - 9));
    assert.equal(id(await stream.next()), 10);
  });

  test('a query as long as the length field allows is read completely', async (t) => {
    let seen = 0;
    const serve: Serve = (query) => {
      seen = query.end - query.start;
      return replyWith(query);
    };
    const stream = await client(t, await start(t, serve));
    const query = queryBytes('big.example.', 3);
    const padding = 65535 - query.length - 11 - 4;
    query[11] = 1;
    const opt = Buffer.alloc(11 + 4 + padding);
    opt.set([0, 0, 41, 16, 0, 0, 0, 0, 0, (padding + 4) >> 8, (padding + 4) & 0xff, 0, 12]);
    opt.writeUInt16BE(padding, 13);
    stream.send(Buffer.concat([query, opt]));
    const reply = await stream.next();
    assert.equal(id(reply), 3);
    assert.equal(seen, 65535);
    assert.ok(reply!.length <= 65535);
  });

  test('replies over 512 bytes arrive whole', async (t) => {
    const stream = await client(t, await start(t, (query) => replyWith(query, 2000)));
    stream.send(queryBytes('many.example.', 5));
    const reply = await stream.next();
    assert.equal(reply!.readUInt16BE(6), 2000);
    assert.equal(reply![2]! & 0x02, 0, 'TC is not set');
  });

  test('large replies reach a client that reads late unchanged, and their memory is freed once they are sent', async (t) => {
    const handed: Buffer[] = [];
    const { write } = Socket.prototype;
    t.mock.method(Socket.prototype, 'write', function (this: Socket, ...words: unknown[]) {
      const bytes = words[0] as Buffer;
      if (bytes.length > 60_000) handed.push(bytes);
      return Reflect.apply(write, this, words) as boolean;
    });
    const stream = await client(t, await start(t, (query) => replyWith(query, 3900)));
    stream.socket.pause();
    const ids = Array.from({ length: 200 }, (_, i) => i);
    stream.send(...ids.map((n) => queryBytes('large.example.', n)));
    await new Promise((resolve) => setTimeout(resolve, 200));
    stream.socket.resume();
    const records = replyBytes(3900);
    for (const n of ids) {
      const reply = await stream.next();
      assert.equal(id(reply), n);
      assert.ok(reply!.subarray(-records.length).equals(records), 'all records are there');
    }
    assert.ok(handed.length > 10, `${handed.length} writes`);
    assert.deepEqual(
      handed.filter(({ length }) => length > 0),
      [],
    );
  });

  test('a client that closed its side still gets its pending replies', async (t) => {
    const serve: Serve = (query) => {
      const kept = query.keep();
      return new Promise((resolve) => setTimeout(() => resolve(replyWith(kept)), 30));
    };
    const stream = await client(t, await start(t, serve));
    stream.send(queryBytes('half.example.', 21), queryBytes('half.example.', 22));
    stream.socket.end();
    assert.equal(id(await stream.next()), 21);
    assert.equal(id(await stream.next()), 22);
    assert.ok(await stream.ended());
  });

  test('garbage gets FORMERR or silence, and the connection stays usable', async (t) => {
    const listener = await start(t, answerOne);
    const stream = await client(t, listener);
    const reply = queryBytes('x.example.', 1);
    reply[2]! |= 0x80;
    const twoQuestions = queryBytes('x.example.', 2);
    twoQuestions[5] = 2;
    stream.send(Buffer.alloc(0), Buffer.from('short'), reply, twoQuestions, Buffer.alloc(40, 0x55));
    const formerr = await stream.next();
    assert.equal(id(formerr), 2);
    assert.equal(formerr![3]! & 0x0f, 1);
    stream.send(queryBytes('x.example.', 3));
    let last = await stream.next();
    while (id(last) !== 3 && last !== null) last = await stream.next();
    assert.equal(id(last), 3);
    assert.equal(listener.counters.ignored.value, 3);
  });

  test('an unknown opcode is NOTIMP, header only', async (t) => {
    const stream = await client(t, await start(t, answerOne));
    const update = queryBytes('x.example.', 9);
    update[2] = 5 << 3;
    stream.send(update);
    const reply = await stream.next();
    assert.equal(reply!.length, 12);
    assert.equal(reply![3]! & 0x0f, 4);
  });

  test('silence is never sent', async (t) => {
    const serve: Serve = (query) => (query.name === 'mute.' ? silence : replyWith(query));
    const stream = await client(t, await start(t, serve));
    stream.send(queryBytes('mute.', 1), queryBytes('loud.', 2));
    assert.equal(id(await stream.next()), 2);
  });

  test('a rejected promise and a throwing server are SERVFAIL, with a log line', async (t) => {
    const parts = listenerParts((query) => {
      if (query.name === 'throws.') throw new Error('thrown');
      return Promise.reject(new Error('rejected'));
    });
    const listener = tcpListener(parts);
    await listener.open();
    t.after(() => listener.close(0));
    const stream = await client(t, listener);
    stream.send(queryBytes('throws.', 1));
    assert.equal((await stream.next())![3]! & 0x0f, 2);
    stream.send(queryBytes('rejects.', 2));
    assert.equal((await stream.next())![3]! & 0x0f, 2);
    assert.deepEqual(parts.lines, [
      '[ERROR] tcp listener: Error: thrown',
      '[ERROR] tcp listener: Error: rejected',
    ]);
  });

  test('a client that connects and sends nothing is disconnected', async (t) => {
    const listener = await start(t, answerOne, { readTimeoutMs: 50 });
    const stream = await client(t, listener);
    assert.ok(await stream.ended());
    assert.equal(listener.counters.timedOut.value, 1);
  });

  test('slow loris: bytes that never form a query do not extend the deadline', async (t) => {
    const listener = await start(t, answerOne, { readTimeoutMs: 150, idleTimeoutMs: 150 });
    const stream = await client(t, listener);
    const drip = setInterval(() => stream.socket.write(Buffer.of(0x7f)), 10);
    t.after(() => clearInterval(drip));
    assert.ok(await stream.ended());

    const later = await client(t, listener);
    later.send(queryBytes('first.example.', 1));
    assert.equal(id(await later.next()), 1);
    const second = setInterval(() => later.socket.write(Buffer.of(0x7f)), 10);
    t.after(() => clearInterval(second));
    assert.ok(await later.ended(), 'also after a first query');
  });

  test('an idle connection is closed after the idle time', async (t) => {
    const stream = await client(t, await start(t, answerOne, { idleTimeoutMs: 50 }));
    stream.send(queryBytes('x.example.', 1));
    assert.equal(id(await stream.next()), 1);
    assert.ok(await stream.ended());
  });

  test('messages other than queries do not keep an idle connection open', async (t) => {
    const reply = queryBytes('x.example.', 1);
    reply[2]! |= 0x80;
    for (const junk of [Buffer.alloc(0), Buffer.from('short'), reply]) {
      const listener = await start(t, answerOne, { idleTimeoutMs: 150 });
      const stream = await client(t, listener);
      stream.send(queryBytes('first.example.', 1));
      assert.equal(id(await stream.next()), 1);
      const babble = setInterval(() => stream.send(junk), 10);
      t.after(() => clearInterval(babble));
      assert.ok(await stream.ended(), `${junk.length} bytes`);
    }
  });

  test('a stream of queries split anywhere is not idle', async (t) => {
    const listener = await start(t, answerOne, { readTimeoutMs: 150, idleTimeoutMs: 150 });
    const stream = await client(t, listener);
    stream.socket.setNoDelay(true);
    // Each piece ends in the middle of a query and completes the query begun by the previous piece.
    const bytes = framed(queryBytes('x.example.', 1));
    stream.socket.write(bytes.subarray(0, 10));
    for (let n = 1; n <= 40; n++) {
      stream.socket.write(Buffer.concat([bytes.subarray(10), bytes.subarray(0, 10)]));
      assert.equal(id(await stream.next()), 1, `query ${n}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(listener.counters.timedOut.value, 0);
  });

  test('memory held for clients that do not read is limited over all connections', async (t) => {
    const listener = await start(t, (query) => replyWith(query, 4000), {
      // On a busy machine, it takes a while until memory is short.
      idleTimeoutMs: 120_000,
      writeTimeoutMs: 120_000,
      connections: 1000,
    });
    const sockets: Socket[] = [];
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    const queries = Buffer.concat(
      Array.from({ length: 400 }, (_, n) => framed(queryBytes('greedy.example.', n))),
    );
    for (let i = 0; i < 200; i++) {
      const socket = connect(listener.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.pause();
      socket.write(queries);
      sockets.push(socket);
    }
    while (listener.counters.accepted.value < 200)
      await new Promise((resolve) => setTimeout(resolve, 5));
    const polite = await client(t, listener);
    polite.send(queryBytes('polite.example.', 7));
    assert.equal(id(await polite.next()), 7);
    while (listener.counters.evicted.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 20));
    polite.send(queryBytes('polite.example.', 8));
    assert.equal(id(await polite.next()), 8);
  });

  test('a client that does not read is no longer read from, and is eventually cut off', async (t) => {
    let served = 0;
    const serve: Serve = (query) => {
      served++;
      return replyWith(query, 4000);
    };
    const listener = await start(t, serve, { writeTimeoutMs: 200 });
    const socket = connect(listener.port, '127.0.0.1');
    await once(socket, 'connect');
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.pause();
    const queries = Buffer.concat(
      Array.from({ length: 20_000 }, (_, n) => framed(queryBytes('greedy.example.', n & 0xffff))),
    );
    socket.write(queries);
    for (let i = 0; i < 100 && listener.counters.timedOut.value === 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal(listener.counters.timedOut.value, 1);
    assert.ok(served < 2000, `served ${served} of 20000: 64 kB each must not pile up`);
  });

  test('waiting queries are limited per connection; all are eventually answered', async (t) => {
    let waiting = 0;
    let most = 0;
    const serve: Serve = (query) => {
      const kept = query.keep();
      most = Math.max(most, ++waiting);
      return new Promise((resolve) =>
        setTimeout(() => {
          waiting--;
          resolve(replyWith(kept));
        }, 5),
      );
    };
    const stream = await client(t, await start(t, serve));
    const ids = Array.from({ length: 1000 }, (_, i) => i + 1);
    stream.send(...ids.map((n) => queryBytes('x.example.', n)));
    const got = new Set<number>();
    for (let i = 0; i < ids.length; i++) got.add(id(await stream.next()));
    assert.equal(got.size, 1000);
    assert.ok(most <= 256, `${most} at a time`);
  });

  test('a client that sends more than there is room for, and then reads, is served completely', async (t) => {
    const listener = await start(t, (query) => replyWith(query, 200), { unreadBytes: 70_000 });
    const stream = await client(t, listener);
    for (let round = 0; round < 3; round++) {
      const ids = Array.from({ length: 1000 }, (_, i) => 1000 * round + i);
      stream.socket.pause();
      stream.send(...ids.map((n) => queryBytes('large.example.', n)));
      await new Promise((resolve) => setTimeout(resolve, 100));
      stream.socket.resume();
      for (const n of ids) assert.equal(id(await stream.next()), n);
    }
  });

  test('one connection with thousands of queries does not delay the others', async (t) => {
    let served = 0;
    let before = 0;
    const listener = await start(t, (query) => {
      if (query.name === 'honest.') before = served;
      else served++;
      return replyWith(query);
    });
    const flood = await client(t, listener);
    const honest = await client(t, listener);
    flood.send(...Array.from({ length: 1500 }, (_, n) => queryBytes('flood.', n)));
    honest.send(queryBytes('honest.', 7));
    assert.equal(id(await honest.next()), 7);
    assert.ok(before < 1000, `${before} others came before`);
    for (let n = 0; n < 1500; n++) assert.equal(id(await flood.next()), n);
  });

  test('the longest idle connection makes room for a new one', async (t) => {
    const listener = await start(t, answerOne, { connections: 2 });
    const first = await client(t, listener);
    first.send(queryBytes('a.', 1));
    await first.next();
    const second = await client(t, listener);
    second.send(queryBytes('b.', 1));
    await second.next();
    first.send(queryBytes('a.', 2));
    await first.next();
    const third = await client(t, listener);
    third.send(queryBytes('c.', 3));
    assert.equal(id(await third.next()), 3);
    assert.ok(await second.ended());
    first.send(queryBytes('a.', 4));
    assert.equal(id(await first.next()), 4);
    assert.equal(listener.counters.connections.value, 2);
  });

  test('when memory is short, a new connection replaces the two longest idle ones, and the number stays the same', async (t) => {
    for (const [there, goes] of [
      [20, 2],
      [16, 1],
      [15, 0],
    ] as const) {
      let isShort = false;
      const listener = tcpListener({ ...listenerParts(answerOne), isShort: () => isShort });
      await listener.open();
      t.after(() => listener.close(0));
      const come = async (n: number): Promise<StreamClient> => {
        const one = await client(t, listener);
        one.send(queryBytes('a.', n));
        assert.equal(id(await one.next()), n);
        return one;
      };
      const first = await come(0);
      for (let n = 1; n < there; n++) await come(n);
      isShort = true;
      await come(there);
      assert.equal(listener.counters.evicted.value, goes);
      assert.equal(listener.counters.connections.value, there + 1 - goes);
      if (goes > 0) assert.ok(await first.ended());
    }
  });

  test('while memory stays short, there are fewer and fewer idle connections', async (t) => {
    let isShort = false;
    const listener = tcpListener({ ...listenerParts(answerOne), isShort: () => isShort });
    await listener.open();
    t.after(() => listener.close(0));
    const come = async (n: number): Promise<void> => {
      const one = await client(t, listener);
      one.send(queryBytes('a.', n));
      assert.equal(id(await one.next()), n);
    };
    for (let n = 0; n < 30; n++) await come(n);
    isShort = true;
    for (let n = 30; n < 36; n++) await come(n);
    assert.equal(listener.counters.evicted.value, 12);
    assert.equal(listener.counters.connections.value, 24);
  });

  test('maxQueries ends a connection after that many queries', async (t) => {
    const stream = await client(t, await start(t, answerOne, { maxQueries: 2 }));
    stream.send(queryBytes('a.', 1), queryBytes('a.', 2), queryBytes('a.', 3));
    assert.equal(id(await stream.next()), 1);
    assert.equal(id(await stream.next()), 2);
    assert.equal(await stream.next(), null);
    assert.ok(await stream.ended());
  });

  test('close sends the replies in flight, then ends the connection', async (t) => {
    const serve: Serve = (query) => {
      const kept = query.keep();
      return new Promise((resolve) => setTimeout(() => resolve(replyWith(kept)), 50));
    };
    const listener = await start(t, serve);
    const busy = await client(t, listener);
    const idle = await client(t, listener);
    busy.send(queryBytes('a.', 6));
    while (listener.counters.received.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 2));
    const closed = listener.close(2000);
    assert.equal(id(await busy.next()), 6);
    assert.ok(await idle.ended());
    busy.socket.end();
    idle.socket.end();
    await closed;
    assert.equal(listener.counters.connections.value, 0);
  });

  test('close waits no longer than the grace period for a missing reply', async (t) => {
    const listener = await start(t, () => new Promise(() => {}));
    const stream = await client(t, listener);
    stream.send(queryBytes('a.', 6));
    while (listener.counters.received.value === 0)
      await new Promise((resolve) => setTimeout(resolve, 2));
    await listener.close(30);
    assert.ok(await stream.ended());
  });

  test('the query has both ends of the connection', async (t) => {
    let seen = '';
    const serve: Serve = (query) => {
      const peer = query.peer.subarray(query.peerAt, query.peerAt + 4);
      seen = `${query.proto} ${query.family} ${peer.join('.')} ${query.peerPort} → ${query.local} ${query.localPort}`;
      return replyWith(query);
    };
    const listener = await start(t, serve);
    const stream = await client(t, listener);
    const { localPort } = stream.socket;
    stream.send(queryBytes('a.', 1));
    await stream.next();
    assert.equal(seen, `tcp 4 127.0.0.1 ${localPort} → 127.0.0.1 ${listener.port}`);
  });
});
