import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';

import { queryBytes } from '../../../../test/kit/loopback.ts';
import {
  readableCounters,
  upstreamParts,
  type ReadableCounters,
} from '../../../../test/kit/upstream.ts';
import { systemClock } from '../../base/clock.ts';
import { secureRandom } from '../../base/random.ts';
import { batchedUdp } from '../../runtime/packet-loop.ts';
import { Query } from '../query.ts';
import { ExchangeError } from '../upstream/upstream-exchange.ts';
import {
  ask as askUpstream,
  type ExchangeReply,
  type Upstream,
  type UpstreamParts,
} from '../upstream-address.ts';
import { systemNetwork } from '../system-network.ts';

type Script = (query: Buffer, from: RemoteInfo, socket: Socket) => void;

/** Starts a server on 127.0.0.1 that follows the script. */
async function server(t: TestContext, script: Script, address = '127.0.0.1'): Promise<number> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (bytes, from) => script(bytes, from, socket));
  socket.bind(0, address);
  await once(socket, 'listening');
  t.after(() => socket.close());
  return socket.address().port;
}

/** Turns the query into a reply without records. */
function reply(query: Buffer): Buffer {
  const bytes = Buffer.from(query);
  bytes[2]! |= 0x80;
  return bytes;
}

const echo: Script = (query, from, socket) => socket.send(reply(query), from.port, from.address);

function ask(name: string, id = 1): Query {
  const query = new Query();
  const bytes = queryBytes(name, id);
  assert.equal(query.read(bytes, 0, bytes.length), 'serve');
  return query;
}

const exchange = (up: Upstream, query: Query, timeoutMs: number): Promise<ExchangeReply> =>
  askUpstream(up, query, timeoutMs, systemClock.now());

for (const transport of ['batched', 'plain'] as const) {
  const found = batchedUdp();
  const skip = transport === 'batched' && !found.available ? found.reason : false;

  describe(`UDP upstream (${transport})`, { skip }, () => {
    function upstream(
      t: TestContext,
      port: number,
      parts: Partial<UpstreamParts> = {},
    ): { readonly up: Upstream; readonly counts: ReadableCounters['counts'] } {
      const network = systemNetwork({ clock: systemClock, random: secureRandom, transport });
      const counters = readableCounters();
      const up = network.upstream(upstreamParts('udp', port, { ...parts, counters }));
      t.after(() => up.close());
      return { up, counts: counters.counts };
    }

    test('the reply to a query is returned', async (t) => {
      const { up } = upstream(t, await server(t, echo));
      const got = await exchange(up, ask('a.example.', 4711), 2000);
      assert.equal(got.bytes[13], 'a'.charCodeAt(0));
      assert.equal(got.truncated, false);
      assert.equal(got.reused, false);
    });

    test('each query is sent from its own random port, never the previous one, and with its own id', async (t) => {
      const ids = new Set<number>();
      const ports: number[] = [];
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          ids.add(query.readUInt16BE(0));
          ports.push(from.port);
          echo(query, from, socket);
        }),
      );
      for (let i = 0; i < 1000; i++) await exchange(up, ask('a.example.', 7), 2000);
      assert.ok(ids.size > 950, `${ids.size} ids`);
      assert.equal(new Set(ports).size, 64);
      assert.equal(counts.sockets, 64);
      assert.equal(ports.filter((port, i) => port === ports[i - 1]).length, 0);
    });

    test('simultaneous queries are sent from different ports as long as there are any', async (t) => {
      const waiting = new Map<number, number>();
      const { up } = upstream(
        t,
        await server(t, (query, from, socket) => {
          waiting.set(from.port, (waiting.get(from.port) ?? 0) + 1);
          setTimeout(() => echo(query, from, socket), 20);
        }),
      );
      await Promise.all(Array.from({ length: 16 }, () => exchange(up, ask('a.example.'), 2000)));
      assert.ok(waiting.size > 12, `${waiting.size} ports for 16 queries`);
      assert.ok(Math.max(...waiting.values()) <= 3);
    });

    test('among many simultaneous queries some share a port, never with the previous one, and each gets its reply', async (t) => {
      const ports: number[] = [];
      const held: (() => void)[] = [];
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          ports.push(from.port);
          held.push(() => echo(query, from, socket));
          if (held.length === 64) for (const answer of held.toReversed()) answer();
        }),
        { sourcePorts: 256 },
      );
      const names = Array.from({ length: 64 }, (_, i) => `n${i}.example.`);
      const got = await Promise.all(names.map((name) => exchange(up, ask(name), 2000)));
      for (const [i, { bytes }] of got.entries())
        assert.ok(ask(`n${i}.example.`).isAskedAt(bytes, 12, bytes.length), `reply ${i}`);
      assert.ok(new Set(ports).size >= 14, `${new Set(ports).size} ports for 64 queries`);
      // Sockets from node:dgram send once they are bound, in no particular order.
      if (transport === 'batched')
        assert.equal(ports.filter((port, i) => port === ports[i - 1]).length, 0);
      const each = new Map<number, number>();
      for (const port of ports) each.set(port, (each.get(port) ?? 0) + 1);
      assert.ok(Math.max(...each.values()) <= 20, 'no port has nearly all');
      assert.equal(counts.strays, 0);
    });

    test('ports are closed after a while, and others opened', async (t) => {
      const ports = new Set<number>();
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          ports.add(from.port);
          echo(query, from, socket);
        }),
        { sourcePorts: 2 },
      );
      for (let i = 0; i < 1100; i++) await exchange(up, ask('a.example.'), 2000);
      assert.ok(ports.size >= 4, `${ports.size} ports`);
      assert.ok(counts.sockets <= 2);
    });

    test('upstreams that may open few sockets share what they have, and each has one', async (t) => {
      let told = 0;
      const network = systemNetwork({
        clock: systemClock,
        random: secureRandom,
        transport,
        sourcePorts: 10,
        onFewPorts: () => told++,
      });
      const counters = readableCounters();
      const port = await server(t, echo);
      const ups = [0, 1, 2].map(() => network.upstream(upstreamParts('udp', port, { counters })));
      t.after(() => ups.forEach((up) => up.close()));
      for (let i = 0; i < 64; i++) await exchange(ups[0]!, ask('a.example.'), 2000);
      assert.equal(counters.counts.sockets, 10);
      for (const up of ups) await exchange(up, ask('a.example.'), 2000);
      assert.equal(counters.counts.sockets, 12);
      assert.equal(told, 1);
      for (const up of ups) up.close();
      assert.equal(counters.counts.sockets, 0);
    });

    test('one port is enough if no more are configured', async (t) => {
      const { up, counts } = upstream(t, await server(t, echo), { sourcePorts: 1 });
      await Promise.all(Array.from({ length: 50 }, () => exchange(up, ask('a.example.'), 2000)));
      assert.equal(counts.sockets, 1);
    });

    test('a burst beyond the limit waits for replies to its first queries, and all get theirs', async (t) => {
      let unanswered = 0;
      let most = 0;
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          most = Math.max(most, ++unanswered);
          setImmediate(() => {
            unanswered--;
            echo(query, from, socket);
          });
        }),
        { burst: 10 },
      );
      await Promise.all(Array.from({ length: 300 }, () => exchange(up, ask('a.example.'), 2000)));
      assert.ok(counts.paced >= 280, `${counts.paced} paced`);
      assert.equal(counts.timeouts, 0);
      assert.ok(most <= 20, `${most} at a time`);
    });

    test('a silent upstream does not delay paced queries', async (t) => {
      let asked = 0;
      const { up } = upstream(t, await server(t, () => asked++), { burst: 16 });
      const all = Array.from({ length: 40 }, () =>
        exchange(up, ask('a.example.'), 1000).catch(() => null),
      );
      await Promise.all(all);
      assert.equal(asked, 40);
    });

    test('simultaneous queries each get their own reply', async (t) => {
      const { up, counts } = upstream(t, await server(t, echo));
      // As many as a socket's default buffer holds.
      const names = Array.from({ length: 200 }, (_, i) => `n${i}.example.`);
      const got = await Promise.all(names.map((name) => exchange(up, ask(name), 5000)));
      got.forEach(({ bytes }, i) => {
        const read = new Query();
        const copy = bytes.slice();
        copy[2]! &= 0x7f;
        assert.equal(read.read(copy, 0, copy.length), 'serve');
        assert.equal(read.name, names[i]);
      });
      assert.ok(counts.sockets <= 64);
    });

    test('forged replies (id, question, type, opcode, not a reply) are ignored and counted', async (t) => {
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          const send = (bytes: Buffer): void => socket.send(bytes, from.port, from.address);
          const wrongId = reply(query);
          wrongId[1]! ^= 1;
          send(wrongId);
          const wrongName = reply(query);
          wrongName[13]! ^= 1;
          send(wrongName);
          const wrongType = reply(query);
          wrongType[query.length - 3]! ^= 1;
          send(wrongType);
          const notify = reply(query);
          notify[2]! |= 0x20;
          send(notify);
          send(query);
          send(Buffer.from('short'));
          send(Buffer.alloc(0));
          setTimeout(() => send(reply(query)), 20);
        }),
      );
      const got = await exchange(up, ask('real.example.'), 2000);
      assert.equal(got.bytes[13], 'r'.charCodeAt(0));
      assert.equal(counts.strays, 7);
    });

    test('a reply from another address does not count', async (t) => {
      const stranger = createSocket('udp4');
      t.after(() => stranger.close());
      const { up, counts } = upstream(
        t,
        await server(t, (query, from) => stranger.send(reply(query), from.port, from.address)),
      );
      await assert.rejects(exchange(up, ask('a.example.'), 100), {
        failure: 'timeout',
      });
      assert.equal(counts.strays, 0, 'the system does not even let it through');
      assert.equal(counts.timeouts, 1);
    });

    test("the reply's question may be spelled differently", async (t) => {
      const { up } = upstream(
        t,
        await server(t, (query, from, socket) => {
          const bytes = reply(query);
          bytes[13] = bytes[13]! ^ 0x20;
          socket.send(bytes, from.port, from.address);
        }),
      );
      await exchange(up, ask('abc.example.'), 2000);
    });

    test('TC is reported; a bare SERVFAIL header is a reply', async (t) => {
      const { up } = upstream(
        t,
        await server(t, (query, from, socket) => {
          const bytes = reply(query);
          if (query[13] === 't'.charCodeAt(0)) bytes[2]! |= 0x02;
          else bytes[3] = 2;
          const whole = query[13] === 't'.charCodeAt(0) ? bytes : bytes.subarray(0, 12);
          if (whole.length === 12) whole[5] = 0;
          socket.send(whole, from.port, from.address);
        }),
      );
      assert.equal((await exchange(up, ask('t.example.'), 2000)).truncated, true);
      const bare = await exchange(up, ask('bare.example.'), 2000);
      assert.equal(bare.bytes.length, 12);
    });

    test('a reply with an unreadable question ends the wait at once', async (t) => {
      const { up, counts } = upstream(
        t,
        await server(t, (query, from, socket) => {
          const bytes = reply(query);
          if (query[13] === 'p'.charCodeAt(0)) bytes.writeUInt16BE(0xc00c, 12);
          else if (query[13] === 'n'.charCodeAt(0)) bytes[5] = 0;
          else bytes.fill(0xa7, query[13] === 'a'.charCodeAt(0) ? 2 : 12);
          socket.send(bytes, from.port, from.address);
        }),
      );
      for (const name of ['pointer.', 'no-question.', 'garbage.', 'all-garbage.'])
        await assert.rejects(exchange(up, ask(name), 2000), { failure: 'garbled' }, name);
      assert.deepEqual([counts.timeouts, counts.strays], [0, 0]);
    });

    test('silence is a timeout in CoreDNS’s words, and the id is free again', async (t) => {
      const { up, counts } = upstream(t, await server(t, () => {}));
      await assert.rejects(exchange(up, ask('a.example.'), 60), (error: unknown) => {
        assert.ok(error instanceof ExchangeError);
        assert.equal(error.failure, 'timeout');
        assert.match(error.message, /^read udp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: i\/o timeout$/);
        return true;
      });
      assert.equal(counts.timeouts, 1);
    });

    test('a closed port is refused without waiting for the timeout', async (t) => {
      const gone = createSocket('udp4');
      gone.bind(0, '127.0.0.1');
      await once(gone, 'listening');
      const { port } = gone.address();
      await new Promise<void>((resolve) => gone.close(resolve));
      const { up } = upstream(t, port);
      for (let i = 0; i < 3; i++) {
        await assert.rejects(exchange(up, ask('a.example.'), 5000), {
          failure: 'refused',
          message: /^(read|write) udp 127\.0\.0\.1:\d+->127\.0\.0\.1:\d+: \1: connection refused$/,
        });
      }
    });

    test('an upstream that refused and comes back is used again', async (t) => {
      const first = createSocket('udp4');
      first.bind(0, '127.0.0.1');
      await once(first, 'listening');
      const { port } = first.address();
      await new Promise<void>((resolve) => first.close(resolve));
      const { up } = upstream(t, port);
      for (let i = 0; i < 60; i++) {
        await exchange(up, ask('a.example.'), 2000).catch(() => {});
      }
      const again = createSocket('udp4');
      again.on('message', (bytes, from) => echo(bytes, from, again));
      again.bind(port, '127.0.0.1');
      await once(again, 'listening');
      t.after(() => again.close());
      for (let i = 0; i < 60; i++) await exchange(up, ask('a.example.'), 2000);
    });

    test('unused sockets are closed after they expire', async (t) => {
      const { up, counts } = upstream(t, await server(t, echo), { expireMs: 50 });
      await exchange(up, ask('a.example.'), 2000);
      assert.equal(counts.sockets, 1);
      for (let i = 0; i < 100 && counts.sockets > 0; i++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      assert.equal(counts.sockets, 0);
      await exchange(up, ask('a.example.'), 2000);
    });

    test('close fails waiting queries', async (t) => {
      const { up, counts } = upstream(t, await server(t, () => {}));
      const waiting = exchange(up, ask('a.example.'), 5000);
      setTimeout(() => up.close(), 20);
      await assert.rejects(waiting, { failure: 'local' });
      await assert.rejects(exchange(up, ask('a.example.'), 5000), { failure: 'local' });
      assert.equal(counts.sockets, 0);
    });

    test('the configured source address is used', async (t) => {
      let from = '';
      const { up } = upstream(
        t,
        await server(t, (query, remote, socket) => {
          from = remote.address;
          echo(query, remote, socket);
        }),
        { source: '127.0.0.3' },
      );
      await exchange(up, ask('a.example.'), 2000);
      assert.equal(from, '127.0.0.3');
    });

    test('a source address that is not local fails at once', async (t) => {
      const parts = { source: '192.0.2.77', sourcePorts: 1 };
      const { up } = upstream(t, await server(t, echo), parts);
      for (let turn = 0; turn < 2; turn++) {
        await assert.rejects(exchange(up, ask('a.example.'), 2000), {
          failure: 'local',
          ...(transport === 'batched' && {
            message:
              /^dial udp 192\.0\.2\.77:0->127\.0\.0\.1:\d+: bind: cannot assign requested address$/,
          }),
        });
      }
    });

    test('while no socket can be opened, failing queries leave nothing behind', async (t) => {
      const drawn = new Set<number>();
      const random = {
        integer: (below: number): number => {
          drawn.add(below);
          return secureRandom.integer(below);
        },
      };
      const network = systemNetwork({ clock: systemClock, random, transport });
      const up = network.upstream(
        upstreamParts('udp', await server(t, echo), { source: '192.0.2.77', sourcePorts: 64 }),
      );
      t.after(() => up.close());
      for (let i = 0; i < 200; i++)
        await assert.rejects(exchange(up, ask('a.example.'), 2000), { failure: 'local' });
      // Ids are chosen while the port is still being opened.
      drawn.delete(65_536);
      assert.ok(Math.max(...drawn) <= 64, `one of ${Math.max(...drawn)} was drawn`);
    });

    test('IPv6 upstreams are queried too', async (t) => {
      let port: number;
      try {
        port = await server(t, echo, '::1');
      } catch {
        return t.skip('no IPv6 loopback here');
      }
      const { up } = upstream(t, port, { address: { host: '::1', port, serverName: '' } });
      await exchange(up, ask('six.example.'), 2000);
    });
  });
}
