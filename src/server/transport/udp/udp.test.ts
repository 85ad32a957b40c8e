import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';

import {
  UdpClient,
  answerOne,
  listenerParts,
  queryBytes,
  replyWith,
} from '../../../../test/kit/loopback.ts';
import { systemClock } from '../../base/clock.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import type { ListenAddress, Listener, Serve } from '../listener.ts';
import { batchedUdp } from '../../runtime/packet-loop.ts';
import { batchedUdpListener } from './udp-batch.ts';
import { plainUdpListener } from './udp-plain.ts';

const run = promisify(execFile);
const id = (message: Buffer | null): number => message?.readUInt16BE(0) ?? -1;
const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

for (const transport of ['batched', 'plain'] as const) {
  const found = batchedUdp();
  const skip = transport === 'batched' && !found.available ? found.reason : false;
  const make = transport === 'batched' ? batchedUdpListener : plainUdpListener;

  describe(`UDP listener (${transport})`, { skip }, () => {
    async function start(
      t: TestContext,
      serve: Serve,
      endpoint: Partial<ListenAddress> = {},
    ): Promise<ReturnType<typeof make>> {
      // The same as with an unlimited `bufsize`, because this tests the listener.
      const unbounded: Serve = (query) => {
        query.udpMost = 65_535;
        return serve(query);
      };
      const listener = make(listenerParts(unbounded, endpoint));
      await listener.open();
      t.after(() => listener.close(0));
      return listener;
    }

    async function client(t: TestContext, address = '127.0.0.1'): Promise<UdpClient> {
      const udp = await UdpClient.open(address);
      t.after(() => udp.close());
      return udp;
    }

    test('a query is answered with its id and spelling', async (t) => {
      const { port } = await start(t, answerOne);
      const reply = await (await client(t)).ask(queryBytes('wWw.example.', 999), port);
      assert.equal(id(reply), 999);
      assert.match(reply!.toString('latin1'), /wWw/);
      assert.equal(reply!.readUInt16BE(6), 1);
    });

    test('a burst of queries is answered completely', async (t) => {
      const listener = await start(t, answerOne);
      const udp = await client(t);
      for (let i = 0; i < 200; i++) udp.send(queryBytes(`n${i}.example.`, i), listener.port);
      const ids = new Set<number>();
      for (let i = 0; i < 200; i++) ids.add(id((await udp.next())!.bytes));
      assert.equal(ids.size, 200);
      assert.equal(listener.counters.received.value, 200);
      assert.equal(listener.counters.sent.value, 200);
    });

    const onlyBatched =
      transport === 'batched' ? {} : { skip: 'node:dgram has no queue of its own' };

    test(
      'datagrams that have waited longer than clients do are dropped and counted',
      onlyBatched,
      async (t) => {
        // The difference between the kernel's clock and the listener's, which makes datagrams appear to have waited.
        let behind = 0;
        const clock = {
          ...systemClock,
          now: () => systemClock.now() + behind,
          wall: () => systemClock.wall() + behind,
        };
        const listener = make({ ...listenerParts(answerOne), clock });
        await listener.open();
        t.after(() => listener.close(0));
        const udp = await client(t);
        behind = 60_000;
        for (let i = 0; i < 100; i++) udp.send(queryBytes('old.example.', i), listener.port);
        while (listener.counters.stale.value < 100) await later(1);
        assert.equal(listener.counters.received.value, 0);
        behind = 0;
        assert.equal(id(await udp.ask(queryBytes('new.example.', 7), listener.port)), 7);
        assert.equal(listener.counters.stale.value, 100);
      },
    );

    test(
      'slow queries share the thread: after a few milliseconds, other work continues',
      onlyBatched,
      async (t) => {
        // Each query takes 20 ms of this clock.
        let passed = 0;
        let turn = 0;
        const served: number[] = [];
        const clock = { ...systemClock, now: () => passed };
        const slow: Serve = (query) => {
          passed += 20;
          served[turn] = (served[turn] ?? 0) + 1;
          return answerOne(query);
        };
        const listener = make({ ...listenerParts(slow), clock });
        await listener.open();
        const count = (): void => {
          turn++;
          next = setImmediate(count);
        };
        let next = setImmediate(count);
        t.after(() => {
          clearImmediate(next);
          return listener.close(0);
        });
        const udp = await client(t);
        for (let i = 0; i < 300; i++) udp.send(queryBytes('slow.example.', i), listener.port);
        for (let i = 0; i < 300; i++) assert.notEqual(await udp.next(), null);
        const turns = served.filter((queries) => queries > 0);
        assert.ok(turns[0]! <= 64);
        // Sixty-four the first time, then half as many each time.
        assert.ok(turns.length > 100, turns.join(' '));
      },
    );

    test('large and small replies in one burst arrive whole', async (t) => {
      const { port } = await start(t, (query) =>
        replyWith(query, query.name.startsWith('big') ? 240 : 1),
      );
      const udp = await client(t);
      for (let i = 0; i < 40; i++) {
        udp.send(queryBytes(i % 2 === 0 ? 'big.example.' : 'small.example.', i, 4096), port);
      }
      for (let i = 0; i < 40; i++) {
        const { bytes } = (await udp.next())!;
        assert.equal(bytes.readUInt16BE(6), bytes.readUInt16BE(0) % 2 === 0 ? 240 : 1);
        assert.equal(bytes[2]! & 0x02, 0);
      }
    });

    test('a reply that exceeds the client’s size is cut, with TC', async (t) => {
      const { port } = await start(t, (query) => replyWith(query, 100));
      const udp = await client(t);
      const small = (await udp.ask(queryBytes('x.example.', 1), port))!;
      assert.ok(small.length <= 512);
      assert.ok((small[2]! & 0x02) !== 0);
      const large = (await udp.ask(queryBytes('x.example.', 2, 4096), port))!;
      assert.equal(large.readUInt16BE(6), 100);
      assert.equal(large[2]! & 0x02, 0);
    });

    test('the largest size that a client can request is served', async (t) => {
      const { port } = await start(t, (query) => replyWith(query, 3000));
      const reply = (await (await client(t)).ask(queryBytes('x.example.', 1, 65535), port))!;
      assert.equal(reply.readUInt16BE(6), 3000);
    });

    test('a pending reply is sent later, to the right client', async (t) => {
      const serve: Serve = async (query) => {
        const kept = query.keep();
        await later(10 + (kept.id % 7));
        return replyWith(kept, 2);
      };
      const { port } = await start(t, serve);
      const clients = await Promise.all([client(t), client(t), client(t)]);
      clients.forEach((udp, c) => {
        for (let i = 0; i < 50; i++) udp.send(queryBytes(`c${c}.example.`, c * 1000 + i), port);
      });
      for (const [c, udp] of clients.entries()) {
        const ids = new Set<number>();
        for (let i = 0; i < 50; i++) {
          const reply = (await udp.next())!.bytes;
          assert.equal(Math.floor(id(reply) / 1000), c);
          ids.add(id(reply));
        }
        assert.equal(ids.size, 50);
      }
    });

    test('the query keeps its client and name while others arrive', async (t) => {
      const seen: string[] = [];
      const serve: Serve = async (query) => {
        const kept = query.keep();
        await later(5);
        seen.push(
          `${kept.name} ${kept.peer.subarray(kept.peerAt, kept.peerAt + 4).join('.')}:${kept.peerPort}`,
        );
        return replyWith(kept);
      };
      const { port } = await start(t, serve);
      const udp = await client(t);
      for (let i = 0; i < 20; i++) udp.send(queryBytes(`n${i}.`, i), port);
      for (let i = 0; i < 20; i++) await udp.next();
      const want = Array.from({ length: 20 }, (_, i) => `n${i}. 127.0.0.1:${udp.port}`);
      assert.deepEqual(seen.toSorted(), want.toSorted());
    });

    test('silence sends nothing, replies and short messages are ignored, garbage is FORMERR', async (t) => {
      const listener = await start(t, (query) =>
        query.name === 'mute.' ? silence : replyWith(query),
      );
      const udp = await client(t);
      const answer = queryBytes('x.', 1);
      answer[2]! |= 0x80;
      const cutName = queryBytes('name.example.', 3).subarray(0, 16);
      const update = queryBytes('x.', 4);
      update[2] = 5 << 3;
      udp.send(queryBytes('mute.', 2), listener.port);
      for (const bytes of [answer, Buffer.from('short'), Buffer.alloc(0), cutName, update]) {
        udp.send(bytes, listener.port);
      }
      udp.send(queryBytes('end.', 5), listener.port);
      const rcodes = new Map<number, number>();
      for (
        let got = await udp.next();
        got !== null;
        got = await udp.next(id(got.bytes) === 5 ? 1 : 500)
      ) {
        rcodes.set(id(got.bytes), got.bytes[3]! & 0x0f);
      }
      assert.deepEqual(
        [...rcodes].toSorted(([a], [b]) => a - b),
        [
          [3, 1],
          [4, 4],
          [5, 0],
        ],
      );
      assert.equal(listener.counters.rejected.value, 2);
    });

    test('a query of over 512 bytes with EDNS options is served', async (t) => {
      const { port } = await start(t, answerOne);
      const query = queryBytes('x.example.', 8);
      query[11] = 1;
      const opt = Buffer.alloc(11 + 4 + 1500);
      opt.set([0, 0, 41, 16, 0, 0, 0, 0, 0, 1504 >> 8, 1504 & 0xff, 0, 12, 1500 >> 8, 1500 & 0xff]);
      const reply = await (await client(t)).ask(Buffer.concat([query, opt]), port);
      assert.equal(id(reply), 8);
      assert.equal(reply![3]! & 0x0f, 0);
    });

    test('a rejected promise and a throwing server are SERVFAIL', async (t) => {
      const { port } = await start(t, (query) => {
        if (query.name === 'throws.') throw new Error('thrown');
        return Promise.reject(new Error('rejected'));
      });
      const udp = await client(t);
      assert.equal((await udp.ask(queryBytes('throws.', 1), port))![3]! & 0x0f, 2);
      assert.equal((await udp.ask(queryBytes('rejects.', 2), port))![3]! & 0x0f, 2);
    });

    test('two listeners share a port, and each query is answered once', async (t) => {
      const first = await start(t, answerOne);
      const second = await start(t, answerOne, { port: first.port });
      const others = await Promise.all(Array.from({ length: 30 }, () => client(t)));
      for (const [i, other] of others.entries()) other.send(queryBytes('x.', i), first.port);
      for (const [i, other] of others.entries()) assert.equal(id((await other.next())!.bytes), i);
      assert.equal(first.counters.received.value + second.counters.received.value, 30);
    });

    test('close answers the waiting queries and then receives nothing', async (t) => {
      let release = (): void => {};
      const listener = await start(t, (query) => {
        const kept = query.keep();
        return new Promise<Reply>((resolve) => {
          release = () => resolve(replyWith(kept));
        });
      });
      const udp = await client(t);
      udp.send(queryBytes('x.', 3), listener.port);
      while (listener.counters.received.value === 0) await later(1);
      const closed = listener.close(2000);
      setTimeout(release, 30);
      assert.equal(id((await udp.next())!.bytes), 3);
      await closed;
      udp.send(queryBytes('x.', 4), listener.port);
      assert.equal(await udp.next(50), null);
    });

    test('close abandons waiting queries after the grace period', async (t) => {
      const listener = await start(t, () => new Promise(() => {}));
      const udp = await client(t);
      udp.send(queryBytes('x.', 3), listener.port);
      while (listener.counters.received.value === 0) await later(1);
      await listener.close(30);
    });

    test('IPv6 clients are served, with their addresses', async (t) => {
      let peer = '';
      let listener: Listener;
      try {
        listener = await start(
          t,
          (query) => {
            peer = `${query.family} ${query.peer.subarray(query.peerAt, query.peerAt + 16).join('')}`;
            return replyWith(query);
          },
          { address: '::1' },
        );
      } catch {
        return t.skip('no IPv6 loopback here');
      }
      const udp = await client(t, '::1');
      udp.send(queryBytes('six.', 6), listener.port, '::1');
      assert.equal(id((await udp.next())!.bytes), 6);
      assert.equal(peer, `6 ${'0'.repeat(15)}1`);
    });

    test('a port in use is reported as a Problem', async (t) => {
      const holder = await UdpClient.open();
      t.after(() => holder.close());
      const listener = make(listenerParts(answerOne, { port: holder.port }));
      await assert.rejects(listener.open(), {
        name: 'Problem',
        code: 'address-in-use',
        message: `listen udp 127.0.0.1:${holder.port}: address already in use`,
      });
    });

    test("another machine's address is reported as a Problem", async () => {
      const listener = make(listenerParts(answerOne, { address: '192.0.2.1', port: 5300 }));
      await assert.rejects(listener.open(), { code: 'address-not-available' });
    });
  });
}

describe('UDP listener on a wildcard address (batched)', () => {
  const found = batchedUdp();
  const skip = found.available ? false : found.reason;

  for (const wait of [false, true]) {
    const what = wait ? 'a late reply' : 'a reply';
    test(`${what} is sent from the queried address`, { skip }, async (t) => {
      const locals: string[] = [];
      const serve: Serve = (query) => {
        locals.push(query.local);
        if (!wait) return replyWith(query);
        const kept = query.keep();
        return later(5).then(() => replyWith(kept));
      };
      const listener = batchedUdpListener(listenerParts(serve, { address: '0.0.0.0' }));
      await listener.open();
      t.after(() => listener.close(0));
      const udp = await UdpClient.open('0.0.0.0');
      t.after(() => udp.close());
      for (const address of ['127.0.0.2', '127.0.0.1', '127.9.9.9']) {
        udp.send(queryBytes('x.', 1), listener.port, address);
        assert.equal((await udp.next())!.address, address);
      }
      assert.deepEqual(locals, ['127.0.0.2', '127.0.0.1', '127.9.9.9']);
    });
  }

  test('also if the listener is already closing', { skip }, async (t) => {
    const listener = batchedUdpListener(
      listenerParts(
        (query) => {
          const kept = query.keep();
          return later(40).then(() => replyWith(kept));
        },
        { address: '0.0.0.0' },
      ),
    );
    await listener.open();
    const udp = await UdpClient.open('0.0.0.0');
    t.after(() => udp.close());
    udp.send(queryBytes('x.', 1), listener.port, '127.0.0.2');
    while (listener.counters.received.value === 0) await later(1);
    const closed = listener.close(2000);
    assert.equal((await udp.next())!.address, '127.0.0.2');
    await closed;
  });

  test(
    'queries that a closing listener no longer accepts go to the one that shares its port',
    { skip },
    async (t) => {
      const slow: Serve = (query) => {
        const kept = query.keep();
        return later(300).then(() => replyWith(kept));
      };
      const old = batchedUdpListener(listenerParts(slow));
      await old.open();
      const udp = await UdpClient.open();
      t.after(() => udp.close());
      udp.send(queryBytes('x.', 1), old.port);
      while (old.counters.received.value === 0) await later(1);
      const fresh = batchedUdpListener(listenerParts(answerOne, { port: old.port }));
      await fresh.open();
      t.after(() => fresh.close(0));
      const closed = old.close(5000);
      const clients = await Promise.all(Array.from({ length: 40 }, () => UdpClient.open()));
      for (const client of clients) client.send(queryBytes('y.', 2), old.port);
      for (const client of clients) assert.equal(id((await client.next(200))?.bytes ?? null), 2);
      for (const client of clients) client.close();
      await closed;
      assert.equal(old.counters.received.value, 1);
      assert.equal(id((await udp.next())!.bytes), 1);
    },
  );

  test('an IPv6 reply is sent from the queried address', { skip }, async (t) => {
    const locals: string[] = [];
    const listener = batchedUdpListener(
      listenerParts(
        (query) => {
          locals.push(query.local);
          return replyWith(query);
        },
        { address: '::' },
      ),
    );
    try {
      await listener.open();
    } catch {
      return t.skip('no IPv6 here');
    }
    t.after(() => listener.close(0));
    const udp = await UdpClient.open('::');
    t.after(() => udp.close());
    udp.send(queryBytes('x.', 1), listener.port, '::1');
    const got = await udp.next();
    if (got === null) return t.skip('no IPv6 loopback here');
    assert.equal(got.address, '::1');
    assert.deepEqual(locals, ['::1']);
  });

  test('a query longer than the receive buffer is FORMERR, and counted', { skip }, async (t) => {
    const listener = batchedUdpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    const udp = await UdpClient.open();
    t.after(() => udp.close());
    const reply = await udp.ask(
      Buffer.concat([queryBytes('x.', 9), Buffer.alloc(5000)]),
      listener.port,
    );
    assert.equal(id(reply), 9);
    assert.equal(reply![3]! & 0x0f, 1);
    assert.equal(listener.counters.cut.value, 1);
  });

  /** Sends `count` queries from a separate process while this thread is stopped. */
  function floodAt(port: number, count: number): void {
    const script = `
      const socket = require('node:dgram').createSocket('udp4');
      const query = Buffer.from(process.argv[1], 'base64');
      socket.connect(${port}, '127.0.0.1', () => {
        let left = ${count};
        const some = () => {
          for (let i = 0; i < 500; i++) socket.send(query, () => {});
          if ((left -= 500) > 0) setImmediate(some); else socket.close(() => console.log('sent'));
        };
        some();
      });`;
    const query = queryBytes('lost.example.').toString('base64');
    execFileSync(process.execPath, ['-e', script, query], { timeout: 30_000 });
  }

  test("datagrams that do not fit into the socket's buffer are counted", { skip }, async (t) => {
    const listener = batchedUdpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    floodAt(listener.port, 40_000);
    const { received, lost } = listener.counters;
    for (let i = 0; i < 300 && lost.value === 0; i++) await later(10);
    assert.ok(lost.value > 0, `${received.value} received`);
    assert.ok(received.value + lost.value <= 40_000);
  });

  test('a closing listener answers everything that the system holds for it', { skip }, async () => {
    const listener = batchedUdpListener(listenerParts(answerOne));
    await listener.open();
    floodAt(listener.port, 2000);
    await listener.close(5000);
    const { received, lost } = listener.counters;
    assert.equal(received.value + lost.value, 2000);
  });

  test('dig accepts its replies', { skip }, async (t) => {
    const listener = batchedUdpListener(listenerParts(answerOne));
    await listener.open();
    t.after(() => listener.close(0));
    try {
      const { stdout } = await run('dig', [
        '+time=2',
        '+tries=1',
        '@127.0.0.1',
        '-p',
        `${listener.port}`,
        'x.example',
      ]);
      assert.match(stdout, /status: NOERROR/);
      assert.match(stdout, /x\.example\.\s+30\s+IN\s+A\s+10\.0\.0\.1/);
      assert.doesNotMatch(stdout, /malformed|mismatch|extra bytes/i);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
        return t.skip('dig is not installed');
      throw error;
    }
  });
});
