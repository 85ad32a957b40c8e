import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import {
  back,
  dnsMessage,
  icmpError,
  TCP,
  tcpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import { asked, at, ends, inOrder, pods } from '../../../../test/kit/story-parts.ts';
import { examine, healthy, play } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const first = async (...packets: readonly (readonly Captured[])[]): Promise<Finding | undefined> =>
  (await examine(inOrder(packets))).findings[0];

const times = <T>(count: number, make: (nth: number) => T): T[] =>
  Array.from({ length: count }, (_, nth) => make(nth));

test('lookups in block lists are well, whether they ask for addresses or domains', async () => {
  const denied = { rcode: RCODE.NXDOMAIN, authority: [soa('list.example.')] };
  for (const nameOf of [
    (nth: number): string => `${nth}.7.0.192.zen.list.example.`,
    (nth: number): string => `shop${nth}.example.net.dbl.list.example.`,
  ]) {
    const all = times(120, (nth): Given => ({
      atMs: nth * 150,
      name: nameOf(nth),
      ...(nth % 10 === 3 ? { address: '127.0.0.4' } : { reply: denied }),
    }));
    const { findings } = await examine(given([...others(20), ...all]));
    assert.deepEqual(
      findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code),
      [],
    );
  }
});

test('a type that fails for external names is named, though cluster names are answered for it', async () => {
  const outside = ['api.example.com.', 'www.example.org.'];
  const srv = times(16, (nth): Given => ({
    ...{ atMs: nth * 900, type: 'SRV' },
    ...(nth % 2 === 0
      ? { name: outside[(nth >> 1) % 2]!, reply: { rcode: RCODE.SERVFAIL, tookMs: 2000 } }
      : { name: 'db.shop.svc.cluster.local.', reply: { authority: [soa('cluster.local.')] } }),
  }));
  const a = times(16, (nth): Given => ({
    ...{ atMs: nth * 900 + 3, address: '192.0.2.8', name: outside[nth % 2]! },
  }));
  const { findings } = await examine(given([...srv, ...a]));
  assert.equal(findings[0]?.code, 'ND3025');
  assert.match(findings[0].seen.join(' '), /8 of 8 SRV .*SERVFAIL.*8 of these errors came after/);
});

test('only external names are slow: the upstream is, and the server that forwards is not', async () => {
  const found = await first(
    await play(pods('glibc', 2, { lookups: 30, everyMs: 4000 }), (passing) =>
      passing.name.endsWith('.cluster.local.')
        ? healthy(passing)
        : { ...healthy(passing), tookMs: 1400 },
    ),
  );
  assert.equal(found?.code, 'ND4003');
  assert.match(found.title, /upstream/);
  assert.match(found.seen[0]!, /^Only external names are slow/);
});

/** First packets of one connection, unanswered. */
const knocks = (from: string, to: string, toPort: number, atMs: number): Captured[] =>
  [0, 1000, 3000, 7000].map((ms) =>
    at(atMs + ms, tcpPacket({ from, fromPort: 41_000 + atMs / 1000, to, toPort }, 1, TCP.SYN)),
  );

test('a zone whose backend accepts no connection is named with it; another zone is not', async () => {
  const server = '10.244.0.4';
  const lookups = given([
    ...others(20).map((each) => ({ ...each, server })),
    ...times(8, (nth): Given => ({
      ...{ atMs: nth * 2000, server, name: `${nth % 2 === 0 ? 'db' : 'cache'}.skydns.test.` },
      reply: { rcode: RCODE.SERVFAIL, tookMs: 2500 },
    })),
  ]);
  const dead = knocks(server, '10.20.0.54', 2379, 1000);
  const found = await first(lookups, dead);
  assert.equal(found?.code, 'ND4055');
  assert.match(found.title, /etcd at 10\.20\.0\.54 port 2379, so names in skydns\.test fail/);
  assert.notEqual((await first(lookups))?.code, 'ND4055');
  assert.notEqual(
    (await first(lookups, knocks('10.244.9.9', '10.20.0.54', 2379, 1000)))?.code,
    'ND4055',
  );
});

test('a zone that is forwarded to a closed port is named, and no list of servers is made up', async () => {
  const [forwarder, server] = ['192.168.10.11', '10.20.0.54'];
  const lost = times(8, (nth) => {
    const way = ends(forwarder, 30_000 + nth, server);
    const query = asked(nth * 1500, way, `${nth % 2 === 0 ? 'web' : 'vault'}.consul.`, nth + 1, {
      tookMs: null,
    });
    return [...query, at(nth * 1500 + 0.3, icmpError(server, query[0]!.bytes, 3, 3, forwarder))];
  }).flat();
  const fine = ['a.example.org.', 'b.example.org.', 'c.example.org.'].flatMap((name, of) =>
    times(5, (nth) =>
      asked(
        nth * 2000 + of,
        ends(forwarder, 31_000 + nth * 3 + of, '10.0.0.2'),
        name,
        nth * 3 + of,
      ),
    ).flat(),
  );
  const found = await first(lost, fine);
  assert.equal(found?.code, 'ND3005');
  assert.match(found.title, /consul are forwarded to 10\.20\.0\.54, where nothing listens/);
  assert.doesNotMatch(found.seen.join(' '), /resolv\.conf/);
});

/** Queries over one TCP connection, at these times; the last ones get no reply. */
function overTcp(fromPort: number, sentMs: readonly number[], lost: boolean): Captured[] {
  const way = ends('192.168.10.11', fromPort);
  const framed = (bytes: Uint8Array): Uint8Array =>
    Uint8Array.from([bytes.length >> 8, bytes.length & 255, ...bytes]);
  let [ours, theirs] = [101, 501];
  const packets = [
    at(sentMs[0]! - 1, tcpPacket(way, 100, TCP.SYN)),
    at(sentMs[0]! - 0.8, tcpPacket(back(way), 500, TCP.SYN | TCP.ACK)),
  ];
  for (const [nth, ms] of sentMs.entries()) {
    const name = `n${fromPort % 7}.shop.svc.cluster.local.`;
    const query = framed(dnsMessage(name, 'A', { id: fromPort - 40_000 + nth * 1000 }));
    const reply = framed(
      dnsMessage(name, 'A', { id: fromPort - 40_000 + nth * 1000, reply: true }),
    );
    packets.push(at(ms, tcpPacket(way, ours, TCP.PSH | TCP.ACK, query)));
    ours += query.length;
    if (lost && nth === sentMs.length - 1) continue;
    packets.push(at(ms + 0.5, tcpPacket(back(way), theirs, TCP.PSH | TCP.ACK, reply)));
    theirs += reply.length;
  }
  return packets;
}

test('queries on TCP connections that were idle are lost: something forgets them; busy ones are well', async () => {
  const idle = (lost: boolean): Captured[][] =>
    times(6, (nth) => overTcp(41_000 + nth, [nth * 7000 + 10, nth * 7000 + 5000], lost));
  const busy = times(6, (nth) => overTcp(42_000 + nth, [nth * 7000 + 50, nth * 7000 + 300], false));
  const end = asked(70_000, ends('10.244.1.7', 5000), 'end.example.org.', 9);
  const found = await first(...idle(true), ...busy, end);
  assert.equal(found?.code, 'ND3045');
  assert.match(found.seen[0]!, /6 of 6 .* idle for 5\.0 s got no reply/);
  assert.notEqual((await first(...idle(false), ...busy, end))?.code, 'ND3045');
});

test('a program that keeps an address after its TTL is named; one that asks again is not', async () => {
  const [client, other, old, now] = ['10.244.1.7', '10.244.1.8', '10.96.70.11', '10.96.170.44'];
  const name = 'inventory.shop.svc.cluster.local.';
  const connect = (from: string, to: string, ms: number, isAccepted: boolean): Captured[] => {
    const way = { from, fromPort: 33_000 + ms / 100, to, toPort: 8080 };
    return isAccepted
      ? [
          at(ms, tcpPacket(way, ms, TCP.SYN)),
          at(ms + 0.2, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK)),
        ]
      : [at(ms, tcpPacket(way, ms, TCP.SYN)), at(ms + 1000, tcpPacket(way, ms, TCP.SYN))];
  };
  const lookups = (asksAgain: boolean): Given[] => [
    ...times(asksAgain ? 12 : 1, (nth): Given => ({
      ...{ atMs: nth * 3000, name, client, address: old, ttl: 5 },
    })),
    ...times(24, (nth): Given => ({
      ...{ atMs: 3000 + nth * 1500, name, client: other, address: now, ttl: 5 },
    })),
  ];
  const connections = [
    ...times(10, (nth) => connect(client, old, 15_000 + nth * 2000, false)),
    ...times(10, (nth) => connect(other, now, 15_100 + nth * 2000, true)),
  ];
  const found = await first(given(lookups(false)), ...connections);
  assert.equal(found?.code, 'ND3091');
  assert.match(found.title, /keeps connecting to an old address/);
  assert.match(found.seen.join(' '), /DNS returns 10\.96\.170\.44/);
  const again = (await examine(inOrder([given(lookups(true)), ...connections]))).findings.find(
    ({ code }) => code === 'ND3091',
  );
  assert.equal(again?.title, 'Connections fail after the lookup');
});
