import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  addressRecord,
  back,
  dnsMessage,
  ip,
  linked,
  pcapFile,
  tcpPacket,
  udp,
  type Captured,
  type Ends,
} from '../../../../test/kit/packets.ts';
import { LINK } from '../read/packets/frame.ts';
import { Reading } from '../read/reading.ts';
import { madeExchange } from '../read/records/made-exchange.ts';
import { LookupGrouping } from './lookups.ts';
import { HeadReader } from './message-head.ts';
import { SearchDomains } from './search-walk.ts';
import type { SeenExchange, SeenLookup } from './seen-exchange.ts';

const service: Ends = { from: '10.244.1.5', fromPort: 40_000, to: '10.96.0.10', toPort: 53 };

interface Sent {
  readonly ms: number;
  readonly name?: string;
  readonly type?: string;
  readonly id?: number;
  readonly ends?: Ends;
  readonly reply?: boolean;
  readonly rcode?: number;
  readonly address?: string;
  readonly ipId?: number;
  readonly ttl?: number;
  readonly port?: number;
  /** The captured bytes of the packet. If omitted, all of them are captured. */
  readonly snap?: number;
}

function read(sent: readonly Sent[]): {
  exchanges: SeenExchange[];
  lookups: SeenLookup[];
  reading: Reading;
} {
  const exchanges: SeenExchange[] = [];
  const lookups: SeenLookup[] = [];
  const reading = new Reading({
    ended: (each) => exchanges.push(each),
    lookup: (each) => lookups.push(each),
  });
  for (const {
    ms,
    name = 'www.example.com.',
    type = 'A',
    id = 7,
    ends = service,
    reply = false,
    rcode = 0,
    address,
    ...more
  } of sent) {
    const answer = address === undefined ? [] : [addressRecord(name, address)];
    const message = dnsMessage(name, type, { id, ...(reply ? { reply, rcode, answer } : {}) });
    const way = reply ? back(ends) : ends;
    const bytes = ip(way, 17, udp(way, message), {
      id: more.ipId ?? ms + id + (reply ? 1 : 0) + 1,
      ttl: more.ttl ?? 64,
    });
    const packet: Captured = { timeMs: 1.7e12 + ms, bytes };
    const end = Math.min(bytes.length, more.snap ?? bytes.length);
    reading.takeNetwork(packet.bytes, 0, end, packet.timeMs, more.port ?? 0);
  }
  reading.end();
  return { exchanges, lookups, reading };
}

const later = { ms: 60_000, id: 999, name: 'end.example.' };

describe('exchanges', () => {
  const pod = { ...service, to: '10.244.3.2' };
  const fromService = (n: number): Ends => ({ ...service, fromPort: 41_000 + n });
  const toPod = (n: number): Ends => ({ ...pod, fromPort: 41_000 + n });

  test('replies from another address are accepted if no client retries, as a bridge shows them', () => {
    const { exchanges } = read([
      ...Array.from({ length: 30 }, (_, n): Sent[] => [
        { ms: n * 700, ends: toPod(n), id: n, name: `n${n % 4}.example.` },
        { ms: n * 700 + 1, ends: fromService(n), id: n, name: `n${n % 4}.example.`, reply: true },
      ]).flat(),
      later,
    ]);
    assert.equal(exchanges.filter(({ ending }) => ending === 'answered').length, 30);
    assert.ok(exchanges.slice(0, 30).every(({ repliedMs, sentMs }) => repliedMs === sentMs + 1));
  });

  test('on a bridge, a refused client retries although it has accepted the reply, even from the same socket', () => {
    const { exchanges } = read(
      [
        ...Array.from({ length: 30 }, (_, n): Sent[] => [
          { ms: n * 200, ends: toPod(n), id: n, name: `n${n}.example.` },
          { ms: n * 200 + 1, ends: fromService(n), id: n, name: `n${n}.example.`, reply: true },
        ]).flat(),
        ...Array.from({ length: 6 }, (_, n): Sent[] =>
          [5, 2505, 5005].flatMap((at): Sent[] => {
            const name = `refused${n}.example.`;
            const ms = n * 200 + at;
            return [
              { ms, ends: toPod(100 + n), id: 100 + n, name },
              { ms: ms + 1, ends: fromService(100 + n), id: 100 + n, name, reply: true, rcode: 5 },
            ];
          }),
        ).flat(),
        later,
      ].toSorted((one, other) => one.ms - other.ms),
    );
    assert.deepEqual(
      exchanges.slice(0, -1).flatMap(({ name, ending }) => (ending === 'answered' ? [] : name)),
      [],
    );
  });

  test('on a bridge, a client that continues its search path has accepted the reply, so its lookups end then', () => {
    const domains = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
    const { lookups } = read([
      ...Array.from({ length: 20 }, (_, n): Sent[] =>
        domains.flatMap((domain, step): Sent[] => {
          const [ms, id, name] = [n * 400 + step * 3, 4 * n + step, `api.example.com.${domain}`];
          return [
            { ms, ends: toPod(id), id, name },
            {
              ...{ ms: ms + 1, ends: fromService(id), id, name, reply: true },
              ...(domain === '' ? { address: '192.0.2.1' } : { rcode: 3 }),
            },
          ];
        }),
      ).flat(),
      later,
    ]);
    const long = lookups.filter(({ startMs, endMs }) => endMs - startMs > 300);
    // Nothing is known about the first searches yet.
    assert.ok(long.length <= 4, `${long.length} of ${lookups.length}`);
  });

  test('replies from another address are rejected if the question comes again after five seconds, from the same socket or another', () => {
    for (const socket of [0, 100]) {
      const { exchanges } = read(
        [
          ...Array.from({ length: 12 }, (_, n): Sent[] =>
            [0, 5000].flatMap((again): Sent[] => {
              const [at, id] = [n * 300 + again, again === 0 ? n : n + socket];
              const port = again === 0 ? n : n + socket;
              const name = `n${n}.example.`;
              return [
                { ms: at, ends: toPod(port), id, name },
                { ms: at + 1, ends: fromService(port), id, name, reply: true },
              ];
            }),
          ).flat(),
          later,
        ].toSorted((one, other) => one.ms - other.ms),
      );
      assert.deepEqual(
        [...new Set(exchanges.slice(0, -1).map(({ repliedMs }) => repliedMs))],
        [null],
      );
      assert.ok(exchanges.slice(0, -1).every(({ stray }) => stray?.address === service.to));
    }
  });

  test('a TCP query of which the capture has only the beginning is not lost: its reply was in the missing part', () => {
    const exchanges: SeenExchange[] = [];
    const reading = new Reading({ ended: (each) => exchanges.push(each) });
    const message = dnsMessage('a.name.that.is.cut.example.com.', 'A', { id: 7 });
    const framed = Uint8Array.from([0, message.length, ...message]);
    const whole = tcpPacket(service, 1, 0x18, framed);
    const head = whole.subarray(0, whole.length - 20);
    reading.takeNetwork(head, 0, head.length, 1.7e12, 0);
    const other = udp(service, dnsMessage('end.example.', 'A', { id: 9 }));
    const last = ip(service, 17, other, { id: 3 });
    reading.takeNetwork(last, 0, last.length, 1.7e12 + 60_000, 0);
    reading.end();
    assert.deepEqual(
      exchanges.map(({ protocol, name, ending }) => [protocol, name, ending]),
      [
        ['tcp', 'a.name.that.is…', 'open'],
        ['udp', 'end.example.', 'open'],
      ],
    );
  });

  test('a walk along the search path is one lookup if the capture has only the beginnings of its names: their lengths distinguish the steps', () => {
    const walk = ['', 'svc.cluster.local.', 'cluster.local.', 'lan.'];
    for (const bytes of [8, 14, 19, 24]) {
      const { lookups } = read(
        [
          ...['redis.cache.shop.', 'db.data.'].flatMap((stem, n) =>
            ['shop.svc.cluster.local.', ...walk.slice(1), ''].flatMap((domain, step) =>
              [0, 1].flatMap((half): Sent[] => {
                const [ms, id] = [n * 2000 + step * 4 + half, n * 100 + 10 * step + half];
                const one = { name: stem + domain, type: half === 0 ? 'A' : 'AAAA', id };
                const snap = 28 + 12 + bytes;
                return [
                  { ...one, ms, snap },
                  { ...one, ms: ms + 2, snap, reply: true, rcode: 3 },
                ];
              }),
            ),
          ),
          later,
        ].toSorted((one, other) => one.ms - other.ms),
      );
      assert.deepEqual(
        lookups.slice(0, -1).map((lookup) => lookup.exchanges.length),
        [10, 10],
        `${bytes} bytes of names`,
      );
    }
  });

  test('the header of a cut query shows whether it has EDNS', () => {
    const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
    const sizes = [edns, null].map((each) => {
      const reader = new HeadReader();
      const message = dnsMessage('a.name.that.is.cut.example.com.', 'A', { id: 7, edns: each });
      assert.ok(!reader.read(message, 0, 24));
      reader.readCut(message, 0, 24);
      return reader.head.udpSize;
    });
    assert.deepEqual(sizes, [512, 0]);
  });

  test('cut names are matched by their beginnings, and pairs of both types are one lookup', () => {
    const snap = 28 + 12 + 20;
    const asked = ['ldap.identity.svc.cluster.local.', 'redis.cache.shop.svc.cluster.local.'];
    const { exchanges, lookups } = read(
      [
        ...asked.flatMap((name, n): Sent[] =>
          ['A', 'AAAA'].flatMap((type, half): Sent[] => [
            { ms: n * 1000 + half, name, type, id: 2 * n + half, snap },
            { ms: n * 1000 + 9, name, type, id: 2 * n + half, snap, reply: true },
          ]),
        ),
        later,
      ].toSorted((one, other) => one.ms - other.ms),
    );
    assert.deepEqual(
      exchanges.slice(0, 4).map(({ name, type, ending }) => [name, type, ending]),
      [
        ...Array.from({ length: 2 }, () => ['ldap.identity.svc.c…', 0, 'answered']),
        ...Array.from({ length: 2 }, () => ['redis.cache.shop.sv…', 0, 'answered']),
      ],
    );
    assert.deepEqual(
      lookups.slice(0, 2).map((lookup) => lookup.exchanges.length),
      [2, 2],
    );
    const domains = new SearchDomains();
    assert.deepEqual(
      ['ldap.identity.svc.c…', 'redis.cache.shop.s…', 'www.example.c…'].map((name) =>
        domains.isOfCluster(name),
      ),
      [true, false, false],
    );
  });

  test('a reply from another port than the query went to is matched by its question', () => {
    const [first] = read([
      { ms: 0 },
      { ms: 1, ends: { ...service, toPort: 60_901 }, reply: true },
      later,
    ]).exchanges;
    assert.deepEqual(
      [first!.ending, first!.stray],
      ['lost', { address: service.to, port: 60_901 }],
    );
  });

  test('a query whose source address is translated is also a hop of the exchange: a pod that queries itself through its service', () => {
    const { exchanges } = read([
      { ms: 0, ipId: 41 },
      { ms: 1, ipId: 41, ttl: 63, ends: { ...service, from: '169.254.1.1', to: '10.244.1.5' } },
      later,
    ]);
    const [first] = exchanges;
    assert.equal(exchanges.length, 2);
    assert.deepEqual(
      first!.hops.map(({ client, server }) => [client.address, server.address]),
      [['169.254.1.1', '10.244.1.5']],
    );
  });

  test('a reply matches only the query with its addresses, ports, id and question', () => {
    const { exchanges, reading } = read([
      { ms: 0 },
      { ms: 1, reply: true, id: 8 },
      { ms: 2, reply: true, name: 'other.example.' },
      { ms: 3, reply: true, ends: { ...service, fromPort: 40_001 } },
      { ms: 4, reply: true, address: '192.0.2.1' },
      later,
    ]);
    assert.equal(exchanges[0]!.repliedMs! - exchanges[0]!.sentMs, 4);
    assert.equal(reading.totals.unasked, 3);
  });

  test('the same packet on another interface, or one router further, is a copy; the same question again is a retry', () => {
    const { exchanges, reading } = read([
      { ms: 0, ipId: 5 },
      { ms: 1, ipId: 5, ttl: 63, port: 2 },
      { ms: 5000, ipId: 6 },
      { ms: 5001, reply: true, ipId: 9 },
      { ms: 5001, reply: true, ipId: 9, port: 2 },
      later,
    ]);
    assert.equal(reading.totals.copies, 2);
    assert.deepEqual(
      exchanges
        .slice(0, 2)
        .toSorted((one, other) => one.sentMs - other.sentMs)
        .map(({ ending, attempt }) => [attempt, ending]),
      [
        [1, 'retried'],
        [2, 'answered'],
      ],
    );
  });

  test('a packet that takes 300 ms to the next place of capture is one query, translated or not', () => {
    const pod = { ...service, to: '10.244.2.38' };
    const { exchanges } = read([
      { ms: 0, ipId: 5 },
      { ms: 0, ipId: 5, ttl: 63, ends: pod },
      { ms: 300, ipId: 5, ttl: 61, ends: pod, port: 300 },
      { ms: 301, ipId: 9, ends: pod, port: 300, reply: true },
      { ms: 600, ipId: 9, ttl: 62, ends: pod, reply: true },
      { ms: 600, ipId: 9, ttl: 61, reply: true },
      later,
    ]);
    assert.deepEqual(
      exchanges.slice(0, 1).map(({ ending, hops }) => [ending, hops[0]!.repliedMs! - 1.7e12]),
      [['answered', 301]],
    );
    assert.equal(exchanges.length, 2);
  });

  test('a reply that arrives after its query was repeated from the same socket is late: the repeat has its own reply', () => {
    const { exchanges } = read([
      { ms: 0 },
      { ms: 5000, ipId: 6 },
      { ms: 5500, reply: true, address: '192.0.2.1' },
      { ms: 5500, reply: true, address: '192.0.2.1', port: 2 },
      { ms: 10_500, reply: true, address: '192.0.2.1' },
      later,
    ]);
    assert.deepEqual(
      exchanges
        .slice(0, 2)
        .toSorted((one, other) => one.sentMs - other.sentMs)
        .map(({ sentMs, repliedMs, ending }) => [sentMs - 1.7e12, repliedMs! - 1.7e12, ending]),
      [
        [0, 5500, 'answered'],
        [5000, 5500, 'answered'],
      ],
    );
  });

  test('a client that gets a late error retries at once, and replies to earlier queries arrive in between: none is lost', () => {
    // Like musl, sends the query again after 2.5 s and after each failure.
    const { exchanges } = read([
      { ms: 0 },
      { ms: 2000, reply: true, rcode: 2 },
      { ms: 2000.1, ipId: 6 },
      { ms: 2500, ipId: 7 },
      { ms: 4000.1, reply: true, rcode: 2 },
      { ms: 4000.2, ipId: 8 },
      { ms: 4500, reply: true, rcode: 2 },
      { ms: 6000.2, reply: true, rcode: 2 },
      later,
    ]);
    assert.deepEqual(
      exchanges.slice(0, 4).map(({ ending }) => ending),
      ['answered', 'answered', 'answered', 'answered'],
    );
  });

  test('a query that was repeated and got one reply was lost, unless the capture ends before another could arrive', () => {
    for (const [endMs, ending] of [
      [30_000, 'retried'],
      [9000, 'open'],
    ] as const) {
      const { exchanges } = read([
        { ms: 0 },
        { ms: 5000, ipId: 6 },
        { ms: 6500, reply: true },
        { ...later, ms: endMs },
      ]);
      const [first] = exchanges.toSorted((one, other) => one.sentMs - other.sentMs);
      assert.equal(first!.ending, ending);
    }
  });

  test('an IPv6 packet, which has no number, is one packet on all interfaces together', async () => {
    const asked: Ends = { from: 'fd00::5', fromPort: 40_000, to: 'fd00:96::a', toPort: 53 };
    const translated = { ...asked, to: 'fd00::53' };
    const seen = (ms: number, way: Ends, reply: boolean, port: number, ttl: number): Captured => {
      const message = dnsMessage('www.example.com.', 'A', { reply });
      const bytes = linked(ip(way, 17, udp(way, message), { ttl }), LINK.SLL2);
      bytes[7] = port;
      return { timeMs: 1.7e12 + ms, bytes };
    };
    const exchanges: SeenExchange[] = [];
    const reading = new Reading({ ended: (each) => exchanges.push(each) });
    const file = pcapFile(LINK.SLL2, [
      seen(0, asked, false, 3, 64),
      seen(0.01, translated, false, 5, 63),
      seen(0.02, translated, false, 9, 63),
      seen(1, back(translated), true, 9, 64),
      seen(1.01, back(translated), true, 5, 64),
      seen(1.02, back(asked), true, 3, 63),
    ]);
    await reading.readWhole({
      ...{ name: 'any.pcap', format: 'pcap', size: null },
      chunks: (async function* () {
        yield file;
      })(),
      taken: () => 0,
      close: () => undefined,
    });
    assert.deepEqual(
      exchanges.map(({ ending, attempt, hops }) => [ending, attempt, hops.length]),
      [['answered', 1, 1]],
    );
    assert.equal(reading.totals.copies, 1);
  });

  test('a translated destination is a hop with its own reply; the exchange ends once', () => {
    const pod = { ...service, to: '10.244.3.7' };
    const answered = read([
      { ms: 0, ipId: 5 },
      { ms: 1, ipId: 5, ttl: 63, ends: pod },
      { ms: 2, reply: true, ends: pod },
      { ms: 3, reply: true },
      later,
    ]);
    assert.equal(answered.exchanges.length, 2);
    const [hop] = answered.exchanges[0]!.hops;
    assert.equal(hop!.server.address, '10.244.3.7');
    assert.equal(hop!.repliedMs! - hop!.sentMs, 1);
    // The reply from the pod never reached the client.
    const lost = read([
      { ms: 0, ipId: 5 },
      { ms: 1, ipId: 5, ttl: 63, ends: pod },
      { ms: 2, reply: true, ends: pod },
      later,
    ]);
    assert.deepEqual(
      lost.exchanges.map(({ ending, hops }) => [ending, hops.length]),
      [
        ['lost', 1],
        ['open', 0],
      ],
    );
    assert.notEqual(lost.exchanges[0]!.hops[0]!.repliedMs, null);
    const cut = read([
      { ms: 0, ipId: 5 },
      { ms: 1, ipId: 5, ttl: 63, ends: pod },
    ]);
    assert.deepEqual(
      cut.exchanges.map(({ ending }) => ending),
      ['open'],
    );
  });

  test('musl queries all servers at once with one ID: each query is an exchange', () => {
    const second = { ...service, to: '10.96.0.11' };
    const { exchanges } = read([
      { ms: 0, ipId: 5 },
      { ms: 0, ipId: 6, ends: second },
      { ms: 1, reply: true, ends: second, rcode: 3 },
      { ms: 2, reply: true, rcode: 3 },
      later,
    ]);
    assert.equal(
      exchanges.filter(({ ending, hops }) => ending === 'answered' && hops.length === 0).length,
      2,
    );
  });

  test('a query of the node itself needs no reply at the interface it left through, even if the node forwards replies there', () => {
    // As in `tcpdump -i any`: 4 is outgoing, 0 incoming.
    const upstream = { ...service, from: '10.244.3.7', to: '192.0.2.53' };
    const own = { ...service, from: '192.0.2.9', fromPort: 50_000 };
    const handedOn = (ms: number, id: number): Sent[] => [
      { ms, id, ends: upstream, ipId: 2 * id },
      { ms, id, ends: upstream, ipId: 2 * id, ttl: 63, port: 4 },
      { ms: ms + 1, id, ends: upstream, ipId: 2 * id + 1, reply: true },
      { ms: ms + 1, id, ends: upstream, ipId: 2 * id + 1, ttl: 63, port: 4, reply: true },
    ];
    const { exchanges } = read([
      { ms: 0, id: 1, ends: own, port: 4 },
      ...handedOn(1, 2),
      ...handedOn(3, 3),
      { ms: 5, id: 1, ends: own, reply: true },
      { ms: 6, id: 4, ends: own, port: 4 },
      { ms: 7, id: 4, ends: own, reply: true },
    ]);
    assert.deepEqual(
      exchanges.map(({ ending }) => ending),
      ['answered', 'answered', 'answered', 'answered'],
    );
  });

  test('when a socket sends a question twice at once, one reply answers both, or both are lost', () => {
    const { exchanges } = read([
      { ms: 0, ipId: 5 },
      { ms: 0.02, ipId: 6 },
      { ms: 1, reply: true, ipId: 7 },
      { ms: 1, reply: true, ipId: 8 },
      { ms: 100, id: 9, ipId: 11 },
      { ms: 101, id: 9, ipId: 12 },
      later,
    ]);
    assert.deepEqual(
      exchanges.map(({ id, ending, attempt }) => [id, ending, attempt]),
      [
        [7, 'answered', 1],
        [7, 'answered', 2],
        [9, 'lost', 1],
        [9, 'lost', 2],
        [999, 'open', 1],
      ],
    );
  });

  test('a packet that is forwarded to ever more addresses at once takes no more time and memory for each', () => {
    const { exchanges, reading } = read([
      ...Array.from({ length: 2000 }, (_, nth) => {
        const to = `10.1.${nth >> 8}.${nth & 255}`;
        return { ms: nth / 1000, ipId: 41, ends: { ...service, to } };
      }),
      later,
    ]);
    assert.equal(exchanges.length, 2);
    assert.equal(exchanges[0]!.hops.length, 16);
    assert.match(reading.remarks.list.map(({ text }) => text).join(), /more addresses/);
  });

  test('repeated questions of sockets respect the limit of waiting queries', () => {
    const sent = Array.from({ length: 17 * 3000 }, (_, nth) => {
      const socket = nth % 3000;
      const ends = { ...service, fromPort: 1024 + socket };
      return { ms: 90 * Math.floor(nth / 3000) + socket / 1000, ends, ipId: 1 + nth };
    });
    const { exchanges, reading } = read(sent);
    const givenUp = reading.remarks.list.find(({ text }) =>
      text.startsWith('too many queries wait'),
    );
    assert.equal(exchanges.length, sent.length);
    assert.equal(exchanges.filter(({ ending }) => ending === 'lost').length, givenUp?.count);
    assert.ok(exchanges.filter(({ ending }) => ending === 'open').length <= 40_000);
  });

  test('a reply that was captured before its query, as several CPUs do, matches it', () => {
    const { exchanges, reading } = read([
      { ms: 1, id: 1, ipId: 1 },
      { ms: 2, id: 1, ipId: 2, reply: true },
      { ms: 4.05, id: 8, ipId: 4, reply: true },
      { ms: 4, id: 8, ipId: 3 },
      later,
    ]);
    assert.deepEqual(
      exchanges.map(({ ending }) => ending),
      ['answered', 'answered', 'open'],
    );
    assert.equal(reading.totals.unasked, 0);
  });

  test('knowledge about the interfaces of one capture does not affect the next', () => {
    const exchange = (ms: number, ports: readonly number[]): Sent[] => [
      { ms, id: 7 + ms, ipId: 2 * ms, port: 4 },
      ...ports.map((port) => ({ ms: ms + 1, id: 7 + ms, ipId: 2 * ms + 1, port, reply: true })),
    ];
    const { exchanges } = read([
      ...[100_000, 100_010, 100_020].flatMap((ms) => exchange(ms, [0, 4])),
      ...[0, 10, 20].flatMap((ms) => exchange(ms, [0])),
    ]);
    assert.deepEqual(
      exchanges.map(({ ending }) => ending),
      Array.from({ length: 6 }, () => 'answered'),
    );
  });

  test('lookups are closed when open ones have too many exchanges, even if time does not advance', () => {
    const given: number[] = [];
    const grouping = new LookupGrouping(
      ({ exchanges }) => given.push(exchanges.length),
      new SearchDomains(),
    );
    for (let nth = 0; nth < 200_000; nth++) {
      const from = `10.1.${(nth >> 8) & 7}.${nth & 255}`;
      const each = madeExchange({
        client: { address: from, port: 4000 },
        server: { address: '10.96.0.10', port: 53 },
        ...{ protocol: 'udp', id: 7, name: `www${nth}.example.`, type: 1, class: 1, udpSize: 0 },
        ...{ sentMs: 1.7e12, repliedMs: 1.7e12, rcode: 0, flags: 0, line: 1 },
      });
      grouping.begun(each);
      grouping.ended(each);
    }
    assert.ok(given.length >= 120_000, `${given.length} were given`);
    grouping.end();
    assert.equal(given.length, 200_000);
  });

  test('a query sent just before the end of a capture is not reported as lost', () => {
    const { exchanges } = read([{ ms: 0 }, { ms: 4000, id: 8 }, { ms: 5000, id: 9 }]);
    assert.deepEqual(
      exchanges.map(({ ending }) => ending),
      ['lost', 'open', 'open'],
    );
  });

  test('a reply from another address than the query went to is reported, and does not answer it', () => {
    const { exchanges } = read([
      { ms: 0 },
      { ms: 1, reply: true, ends: { ...service, to: '10.244.3.7' } },
      later,
    ]);
    assert.equal(exchanges[0]!.stray?.address, '10.244.3.7');
    assert.equal(exchanges[0]!.ending, 'lost');
  });

  test('a second capture of the same time starts fresh: nothing of the first waits, nothing accumulates', () => {
    const one = [
      { ms: 0 },
      { ms: 1, reply: true },
      { ms: 20_000, id: 8 },
      { ms: 20_001, id: 8, reply: true },
    ];
    const { exchanges, lookups } = read([...one, ...one, ...one]);
    assert.deepEqual(
      exchanges.map(({ ending }) => ending),
      Array.from({ length: 6 }, () => 'answered'),
    );
    assert.equal(lookups.length, 6);
  });
});

describe('lookups', () => {
  const pair = (ms: number, name: string, id: number, rcode: number, address?: string): Sent[] => [
    { ms, name, id, type: 'A' },
    { ms, name, id: id + 1, type: 'AAAA' },
    {
      ms: ms + 1,
      name,
      id,
      type: 'A',
      reply: true,
      rcode,
      ...(address === undefined ? {} : { address }),
    },
    { ms: ms + 1, name, id: id + 1, type: 'AAAA', reply: true, rcode },
  ];

  test('a walk along the search path is one lookup, under the typed name', () => {
    const { lookups } = read([
      ...pair(0, 'api.shop.svc.cluster.local.', 1, 3),
      ...pair(2, 'api.svc.cluster.local.', 3, 3),
      ...pair(4, 'api.cluster.local.', 5, 3),
      ...pair(6, 'api.corp.example.', 7, 3),
      ...pair(8, 'api.', 9, 3),
    ]);
    assert.deepEqual(
      lookups.map(({ name, candidates }) => [name, candidates.length]),
      [['api', 5]],
    );
  });

  test('a walk along the search path whose steps are a slow round trip apart is one lookup, at the server too', () => {
    const { lookups } = read(
      [
        'api.shop.svc.cluster.local.',
        'api.svc.cluster.local.',
        'api.cluster.local.',
        'api.',
      ].flatMap((name, step) => [
        { ms: step * 400, name, id: step + 1 },
        { ms: step * 400 + 1, name, id: step + 1, reply: true, rcode: step < 3 ? 3 : 0 },
      ]),
    );
    assert.deepEqual(
      lookups.map(({ name, exchanges }) => [name, exchanges.length]),
      [['api', 4]],
    );
  });

  test('a search continues after the first of two servers has replied, as musl does it', () => {
    const other: Ends = { ...service, to: '192.168.10.53' };
    const names = ['api.shop.svc.cluster.local.', 'api.svc.cluster.local.', 'api.cluster.local.'];
    const { lookups } = read(
      names
        .flatMap((name, step) =>
          [other, service].flatMap((ends, at): Sent[] => [
            { ms: step * 5, name, id: step, ends, ipId: 100 * step + 10 * at },
            // The second reply comes after the next name is queried.
            {
              ms: step * 5 + 4 + 8 * at,
              name,
              id: step,
              ends,
              ipId: 100 * step + 10 * at + 1,
              reply: true,
              rcode: at === 1 && step === 1 ? 0 : 3,
              ...(at === 1 && step === 1 ? { address: '10.96.7.7' } : {}),
            },
          ]),
        )
        .toSorted((one, next) => one.ms - next.ms),
    );
    assert.deepEqual(
      lookups.map(({ name, candidates, exchanges }) => [name, candidates, exchanges.length]),
      [['api', names, 6]],
    );
  });

  test('two names one after the other are two lookups, even if neither exists', () => {
    const { lookups } = read([
      ...pair(0, 'one.example.com.', 1, 3),
      ...pair(2, 'two.example.org.', 3, 3),
    ]);
    assert.deepEqual(
      lookups.map(({ name }) => name),
      ['one.example.com.', 'two.example.org.'],
    );
  });

  test('`redis.cache.svc` and `redis.cache` are two lookups: `svc` alone is not a search domain', () => {
    const { lookups } = read([
      ...pair(0, 'redis.cache.svc.', 1, 3),
      ...pair(2, 'redis.cache.', 3, 3),
    ]);
    assert.equal(lookups.length, 2);
  });

  test('the same name twice is two lookups when the first was answered', () => {
    const { lookups } = read([
      ...pair(0, 'a.example.', 1, 0, '192.0.2.1'),
      ...pair(10, 'a.example.', 3, 0, '192.0.2.1'),
    ]);
    assert.equal(lookups.length, 2);
  });

  test('a query that is repeated after five seconds, and its successors, belong to the same lookup', () => {
    const { lookups } = read([
      { ms: 0, id: 1, type: 'A' },
      { ms: 0, id: 2, type: 'AAAA' },
      { ms: 1, id: 1, type: 'A', reply: true, address: '192.0.2.1' },
      { ms: 5000, id: 1, type: 'A' },
      { ms: 5001, id: 1, type: 'A', reply: true, address: '192.0.2.1' },
      { ms: 5001, id: 2, type: 'AAAA' },
      { ms: 5002, id: 2, type: 'AAAA', reply: true },
      { ...later, ms: 30_000 },
    ]);
    assert.equal(lookups[0]!.exchanges.length, 4);
    assert.ok(lookups[0]!.endMs - lookups[0]!.startMs > 5000);
  });

  test('a lookup has no more queries than a client sends: further ones begin another lookup', () => {
    const count = 2000;
    const sent = Array.from({ length: count }, (_, at) => {
      const to = `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
      return { ms: at / 10, ends: { ...service, to }, ipId: at + 1 };
    });
    const { lookups } = read(sent);
    assert.equal(lookups.flatMap(({ exchanges }) => exchanges).length, count);
    assert.ok(lookups.every(({ exchanges }) => exchanges.length <= 512));
  });

  test('two pods that look up the same name at once have two lookups', () => {
    const other = { ...service, from: '10.244.1.6' };
    const { lookups } = read([
      { ms: 0, id: 1 },
      { ms: 0, id: 1, ends: other },
      { ms: 1, id: 1, reply: true },
      { ms: 1, id: 1, ends: other, reply: true },
    ]);
    assert.deepEqual(lookups.map(({ client }) => client).toSorted(), ['10.244.1.5', '10.244.1.6']);
  });
});
