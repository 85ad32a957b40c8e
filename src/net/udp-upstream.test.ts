import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';

import { queryBytes } from '../../test/kit/loopback.ts';
import { systemClock } from '../base/clock.ts';
import { secureRandom } from '../base/random.ts';
import { batchedUdp } from '../linux/packet-loop.ts';
import { Query } from '../wire/query.ts';
import { ExchangeError, type Upstream, type UpstreamParts } from './network.ts';
import { systemNetwork, type SystemNetwork } from './system-network.ts';

type Script = (query: Buffer, from: RemoteInfo, socket: Socket) => void;

/** A server on 127.0.0.1 that does what the script says. */
async function server(t: TestContext, script: Script, address = '127.0.0.1'): Promise<number> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (bytes, from) => script(bytes, from, socket));
  socket.bind(0, address);
  await once(socket, 'listening');
  t.after(() => socket.close());
  return socket.address().port;
}

/** The query as a reply without records. */
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

for (const transport of ['batched', 'plain'] as const) {
  const found = batchedUdp();
  const skip = transport === 'batched' && !found.available ? found.reason : false;

  describe(`UDP upstream (${transport})`, { skip }, () => {
    function upstream(
      t: TestContext,
      port: number,
      parts: Partial<UpstreamParts> = {},
    ): { up: Upstream; network: SystemNetwork } {
      const network = systemNetwork({ clock: systemClock, random: secureRandom, transport });
      const up = network.upstream({
        address: { host: '127.0.0.1', port, serverName: '' },
        proto: 'udp',
        tls: null,
        expireMs: 10_000,
        maxAgeMs: 0,
        maxIdle: 0,
        source: '',
        httpMethod: 'POST',
        ...parts,
      });
      t.after(() => up.close());
      return { up, network };
    }

    test('a reply comes back under the id of the query', async (t) => {
      const { up } = upstream(t, await server(t, echo));
      const got = await up.exchange(ask('a.example.', 4711), 2000);
      assert.equal((got.bytes[0]! << 8) | got.bytes[1]!, 4711);
      assert.equal(got.truncated, false);
      assert.equal(got.reused, false);
    });

    test('ids and source ports are drawn afresh', async (t) => {
      const ids = new Set<number>();
      const ports = new Set<number>();
      const { up } = upstream(
        t,
        await server(t, (query, from, socket) => {
          ids.add(query.readUInt16BE(0));
          ports.add(from.port);
          echo(query, from, socket);
        }),
      );
      for (let i = 0; i < 200; i++) await up.exchange(ask('a.example.', 7), 2000);
      assert.ok(ids.size > 190, `${ids.size} ids`);
      assert.ok(ports.size > 20, `${ports.size} ports`);
    });

    test('queries at once all get their own reply', async (t) => {
      const { up, network } = upstream(t, await server(t, echo));
      // As many as a socket's default buffer holds.
      const names = Array.from({ length: 200 }, (_, i) => `n${i}.example.`);
      const got = await Promise.all(names.map((name) => up.exchange(ask(name), 5000)));
      got.forEach(({ bytes }, i) => {
        const read = new Query();
        const copy = bytes.slice();
        copy[2]! &= 0x7f;
        assert.equal(read.read(copy, 0, copy.length), 'serve');
        assert.equal(read.name, names[i]);
      });
      assert.ok(network.counters.udpSockets <= 32);
    });

    test('forged replies (id, question, type, no reply at all) are ignored and counted', async (t) => {
      const { up, network } = upstream(
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
          send(query);
          send(Buffer.from('short'));
          send(Buffer.alloc(0));
          setTimeout(() => send(reply(query)), 20);
        }),
      );
      const got = await up.exchange(ask('real.example.'), 2000);
      assert.equal(got.bytes[13], 'r'.charCodeAt(0));
      assert.equal(network.counters.strays, 6);
    });

    test('a reply from another address does not count', async (t) => {
      const stranger = createSocket('udp4');
      t.after(() => stranger.close());
      const { up, network } = upstream(
        t,
        await server(t, (query, from) => stranger.send(reply(query), from.port, from.address)),
      );
      await assert.rejects(up.exchange(ask('a.example.'), 100), {
        failure: 'timeout',
      });
      assert.equal(network.counters.strays, 0, 'the system does not even let it through');
      assert.equal(network.counters.timeouts, 1);
    });

    test('the question may come back in another spelling', async (t) => {
      const { up } = upstream(
        t,
        await server(t, (query, from, socket) => {
          const bytes = reply(query);
          bytes[13] = bytes[13]! ^ 0x20;
          socket.send(bytes, from.port, from.address);
        }),
      );
      await up.exchange(ask('abc.example.'), 2000);
    });

    test('TC is told; a bare SERVFAIL header is a reply', async (t) => {
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
      assert.equal((await up.exchange(ask('t.example.'), 2000)).truncated, true);
      const bare = await up.exchange(ask('bare.example.'), 2000);
      assert.equal(bare.bytes.length, 12);
    });

    test('silence is a timeout in CoreDNS’s words, and the id is free again', async (t) => {
      const { up, network } = upstream(t, await server(t, () => {}));
      await assert.rejects(up.exchange(ask('a.example.'), 60), (error: unknown) => {
        assert.ok(error instanceof ExchangeError);
        assert.equal(error.failure, 'timeout');
        assert.match(error.message, /^read udp 127\.0\.0\.1:\d+: i\/o timeout$/);
        return true;
      });
      assert.equal(network.counters.timeouts, 1);
    });

    test('a closed port is refused, without waiting for the timeout', async (t) => {
      const gone = createSocket('udp4');
      gone.bind(0, '127.0.0.1');
      await once(gone, 'listening');
      const { port } = gone.address();
      await new Promise<void>((resolve) => gone.close(resolve));
      const { up } = upstream(t, port);
      for (let i = 0; i < 3; i++) {
        await assert.rejects(up.exchange(ask('a.example.'), 5000), { failure: 'refused' });
      }
    });

    test('an upstream that was refused and comes back is heard again', async (t) => {
      const first = createSocket('udp4');
      first.bind(0, '127.0.0.1');
      await once(first, 'listening');
      const { port } = first.address();
      await new Promise<void>((resolve) => first.close(resolve));
      const { up } = upstream(t, port);
      for (let i = 0; i < 60; i++) {
        await up.exchange(ask('a.example.'), 2000).catch(() => {});
      }
      const again = createSocket('udp4');
      again.on('message', (bytes, from) => echo(bytes, from, again));
      again.bind(port, '127.0.0.1');
      await once(again, 'listening');
      t.after(() => again.close());
      for (let i = 0; i < 60; i++) await up.exchange(ask('a.example.'), 2000);
    });

    test('sockets nobody uses are closed after the expiry', async (t) => {
      const { up, network } = upstream(t, await server(t, echo), { expireMs: 50 });
      await up.exchange(ask('a.example.'), 2000);
      assert.equal(network.counters.udpSockets, 1);
      for (let i = 0; i < 100 && network.counters.udpSockets > 0; i++) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      assert.equal(network.counters.udpSockets, 0);
      await up.exchange(ask('a.example.'), 2000);
    });

    test('close fails what waits', async (t) => {
      const { up, network } = upstream(t, await server(t, () => {}));
      const waiting = up.exchange(ask('a.example.'), 5000);
      setTimeout(() => up.close(), 20);
      await assert.rejects(waiting, { failure: 'local' });
      await assert.rejects(up.exchange(ask('a.example.'), 5000), { failure: 'local' });
      assert.equal(network.counters.udpSockets, 0);
    });

    test('the source address is the one asked for', async (t) => {
      let from = '';
      const { up } = upstream(
        t,
        await server(t, (query, remote, socket) => {
          from = remote.address;
          echo(query, remote, socket);
        }),
        { source: '127.0.0.3' },
      );
      await up.exchange(ask('a.example.'), 2000);
      assert.equal(from, '127.0.0.3');
    });

    test('a source address that is not ours fails at once', async (t) => {
      const { up } = upstream(t, await server(t, echo), { source: '192.0.2.77' });
      await assert.rejects(up.exchange(ask('a.example.'), 2000), { failure: 'local' });
    });

    test('IPv6 upstreams are asked too', async (t) => {
      let port: number;
      try {
        port = await server(t, echo, '::1');
      } catch {
        return t.skip('no IPv6 loopback here');
      }
      const { up } = upstream(t, port, { address: { host: '::1', port, serverName: '' } });
      await up.exchange(ask('six.example.'), 2000);
    });
  });
}
