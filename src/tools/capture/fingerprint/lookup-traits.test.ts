/** Simulates various kinds of clients as packets, including TCP, truncated captures and several servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../../server/base/random.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  framed,
  tcpPacket,
  TCP,
  udpPacket,
  type Captured,
} from '../../../../test/kit/packets.ts';
import {
  healthy,
  play,
  podResolvConf,
  type Fate,
  type Passing,
} from '../../../../test/kit/story.ts';
import { Reading } from '../read/reading.ts';
import type { SeenLookup } from '../pair/seen-exchange.ts';
import { Recognition, type Recognised } from './recognition.ts';

/** A query. TCP queries sent from the same port at the same time share a segment. */
interface Asked {
  readonly ms: number;
  readonly protocol?: 'udp' | 'tcp';
  readonly server?: string;
  readonly port: number;
  readonly id: number;
  readonly name: string;
  readonly type: 'A' | 'AAAA';
  /** Omitted: no EDNS. */
  readonly edns?: 'plain' | 'cookie';
  /** The UDP size in the OPT record, which is 1232 by default. */
  readonly udpSize?: number;
  readonly truncated?: boolean;
  readonly afterMs?: number;
}

const START_MS = 1.7e12;
const domains = ['market.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
const stems = [
  'api.stripe.com.',
  'tracking.harbor.example.',
  'hooks.slack.com.',
  'index.crates.io.',
  'pubsub.googleapis.com.',
  'ghcr.io.',
  'feed.nimbus.example.',
  'mail.example.net.',
];

/** Random IDs with independent bits. */
const drawn = (): (() => number) => {
  const random = seededRandom(5);
  return () => random.integer(0x10000);
};

/** A pair's IDs as glibc derives them from one clock, with equal high bits and bytes swapped. */
const ofClock = (): (() => number) => {
  const random = seededRandom(9);
  let last = 0;
  let at = 0;
  return () => {
    last = at++ % 2 === 0 ? random.integer(0x10000) : last ^ (1 + random.integer(0x7ff));
    return ((last & 0xff) << 8) | (last >> 8);
  };
};

function packetsOf(asked: readonly Asked[]): readonly Captured[] {
  const packets: Captured[] = [];
  const streams = new Map<number, { ours: number; theirs: number }>();
  const segments = new Map<string, Asked[]>();
  const endsOf = ({ port, server = '10.96.0.10' }: Asked) => ({
    ...{ from: '10.244.1.9', fromPort: 30_000 + port, to: server, toPort: 53 },
  });
  const queryOf = ({ name, type, id, edns, udpSize = 1232 }: Asked): Uint8Array =>
    dnsMessage(name, type, {
      id,
      edns:
        edns === undefined
          ? null
          : {
              ...{ udpSize, version: 0, dnssecOk: false },
              options:
                edns === 'cookie'
                  ? [{ code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) }]
                  : [],
            },
    });
  const replyOf = ({ name, type, id, truncated = false }: Asked): Uint8Array => {
    const exists = !name.endsWith('cluster.local.');
    const address = addressRecord(name, type === 'A' ? '192.0.2.7' : '2001:db8::7');
    return dnsMessage(name, type, {
      ...{ id, reply: true, rcode: exists ? 0 : 3, answer: exists && !truncated ? [address] : [] },
      ...(truncated ? { flags: 0x8380 } : {}),
    });
  };
  for (const each of asked) {
    const { ms, port, protocol = 'udp', afterMs = 20 } = each;
    const timeMs = START_MS + ms;
    if (protocol === 'udp') {
      packets.push({ timeMs, bytes: udpPacket(endsOf(each), queryOf(each)) });
      packets.push({
        ...{ timeMs: timeMs + afterMs, bytes: udpPacket(back(endsOf(each)), replyOf(each)) },
      });
      continue;
    }
    const key = `${port} ${ms}`;
    segments.set(key, [...(segments.get(key) ?? []), each]);
  }
  for (const together of segments.values()) {
    const [{ ms, port, afterMs = 20 }] = together as [Asked];
    const ends = endsOf(together[0]!);
    let stream = streams.get(port);
    if (stream === undefined) {
      streams.set(port, (stream = { ours: 1001, theirs: 5001 }));
      packets.push({ timeMs: START_MS + ms - 0.1, bytes: tcpPacket(ends, 1000, TCP.SYN) });
      packets.push({
        ...{ timeMs: START_MS + ms - 0.05, bytes: tcpPacket(back(ends), 5000, TCP.SYN | TCP.ACK) },
      });
    }
    const segment = Buffer.concat(together.map((each) => framed(queryOf(each))));
    packets.push({
      ...{ timeMs: START_MS + ms, bytes: tcpPacket(ends, stream.ours, TCP.PSH | TCP.ACK, segment) },
    });
    stream.ours += segment.length;
    for (const [at, each] of together.entries()) {
      const reply = framed(replyOf(each));
      const bytes = tcpPacket(back(ends), stream.theirs, TCP.PSH | TCP.ACK, reply);
      packets.push({ timeMs: START_MS + ms + afterMs + at, bytes });
      stream.theirs += reply.length;
    }
  }
  return packets.toSorted((one, other) => one.timeMs - other.timeMs);
}

interface Seen {
  readonly best: Recognised | null;
  readonly lookups: readonly SeenLookup[];
}

const seen = (asked: readonly Asked[], snap?: number): Seen => seenIn(packetsOf(asked), snap);

/** @param snap how many bytes of each packet are captured, from the IP header on */
function seenIn(packets: readonly Captured[], snap = Infinity): Seen {
  const recognition = new Recognition();
  const lookups: SeenLookup[] = [];
  const reading = new Reading({
    lookup(lookup) {
      recognition.add(lookup);
      lookups.push(lookup);
    },
  });
  for (const { bytes, timeMs } of packets)
    reading.takeNetwork(bytes, 0, Math.min(snap, bytes.length), timeMs, 0);
  reading.end();
  return { best: recognition.best, lookups };
}

/**
 * Walks the search path with a pair of questions per name.
 * @param pair the questions for a name, where `at` counts the names and `lookup` the searches
 */
function walks(
  pair: (at: number, lookup: number, type: 'A' | 'AAAA') => Omit<Asked, 'ms' | 'name' | 'type'>,
  { apartMs = 0, first = 'A' }: { apartMs?: number; first?: 'A' | 'AAAA' | 'either' } = {},
  search: readonly string[] = domains,
): Asked[] {
  return stems.flatMap((stem, lookup) =>
    search.flatMap((domain, step) => {
      const at = lookup * search.length + step;
      const isTurned = first === 'AAAA' || (first === 'either' && at % 3 > 0);
      const types = isTurned ? (['AAAA', 'A'] as const) : (['A', 'AAAA'] as const);
      return types.map((type, half) => ({
        ...{ ms: lookup * 900 + step * 60 + half * apartMs, name: `${stem}${domain}`, type },
        ...pair(at, lookup, type),
      }));
    }),
  );
}

/** The captured bytes of each packet after the Ethernet header, or Infinity for the whole packet. */
const snaps = [96 - 14, 128 - 14, 160 - 14, Infinity];

test('c-ares over TCP uses one connection for a whole walk and sends A and AAAA in one segment; it is recognised however little of the second query the capture has', () => {
  for (const snap of snaps)
    for (const edns of [undefined, 'plain'] as const) {
      const id = drawn();
      const { best } = seen(
        walks((_, lookup) => ({
          ...{ protocol: 'tcp', port: lookup, id: id() },
          ...(edns === undefined ? {} : { edns }),
        })),
        snap,
      );
      assert.deepEqual(best?.among, ['c-ares'], `${snap} ${edns}: ${best?.confidence}`);
    }
});

test('glibc with use-vc opens a connection for each name and sends A and AAAA in one segment; it is recognised however little of the second query the capture has', () => {
  for (const snap of snaps) {
    const id = ofClock();
    const { best } = seen(
      walks((at) => ({ protocol: 'tcp', port: at, id: id() })),
      snap,
    );
    assert.deepEqual(best?.among, ['glibc'], `${snap}: ${best?.kind} ${best?.confidence}`);
  }
});

test('the second query of a segment belongs to the lookup of the first, even if the capture has only its beginning', () => {
  const id = ofClock();
  const asked = walks((at) => ({ protocol: 'tcp', port: at, id: id() }));
  for (const snap of [128 - 14, 160 - 14]) {
    const { lookups } = seen(asked, snap);
    assert.equal(lookups.length, stems.length, `${snap}`);
    for (const { exchanges, candidates } of lookups) {
      if (snap > 128) assert.equal(exchanges.length, 2 * domains.length);
      assert.equal(candidates.length, domains.length);
    }
  }
});

test('glibc asks both questions again over TCP, with the same ids, if one is truncated: that is one lookup, and its UDP queries identify glibc', () => {
  for (const snap of snaps) {
    const id = ofClock();
    const asked = walks((at) => ({ port: 2 * at, id: id() }), { apartMs: 0.04 }, ['']).flatMap(
      (each): Asked[] => [
        // The AAAA reply is slower and has not arrived yet when TCP is used.
        { ...each, truncated: each.type === 'A', afterMs: each.type === 'A' ? 20 : 40 },
        {
          ...{ ...each, protocol: 'tcp', port: each.port + 1 },
          ms: Math.floor(each.ms / 10) * 10 + 21,
        },
      ],
    );
    const { best, lookups } = seen(asked, snap);
    assert.equal(lookups.length, stems.length, `${snap}`);
    assert.deepEqual(best?.among, ['glibc'], `${snap}: ${best?.kind} ${best?.confidence}`);
  }
});

test('Go is recognised by the header although the capture cuts off its EDNS', () => {
  for (const snap of [96 - 14, 104 - 14, 112 - 14]) {
    const id = drawn();
    let port = 0;
    const { best, lookups } = seen(
      walks(() => ({ port: ++port, id: id(), edns: 'plain' }), { apartMs: 0.05, first: 'either' }),
      snap,
    );
    for (const { exchanges } of lookups)
      for (const { name, udpSize } of exchanges) assert.ok(udpSize > 0, `${snap}: ${name}`);
    assert.deepEqual(best?.among, ['go'], `${snap}: ${best?.kind} ${best?.confidence}`);
  }
});

test('where a network varies the delay of packets, A and AAAA arrive in either order and after replies, and the client is still recognised', () => {
  for (const [kind, edns] of [
    ['glibc', undefined],
    ['musl', undefined],
    ['go', 'plain'],
    ['go', undefined],
    ['c-ares', 'plain'],
  ] as const) {
    const next = kind === 'glibc' ? ofClock() : drawn();
    let port = 0;
    let last = 0;
    const id = (at: number): number => {
      // musl takes both IDs from the clock, with AAAA's slightly later than A's.
      if (kind !== 'musl') return next();
      const isSecond = last > 0;
      const given = isSecond ? (at % 3 > 0 ? last - 900 : last + 900) : 2000 + (next() >> 1);
      last = isSecond ? 0 : given;
      return given & 0xffff;
    };
    const asked = walks(
      (at) => ({
        ...{ port: kind === 'go' ? ++port : at, id: id(at), afterMs: 0.2 },
        ...(edns === undefined ? {} : { edns }),
      }),
      { apartMs: 7, first: 'either' },
      [''],
    );
    const { best } = seen(asked);
    assert.deepEqual(best?.among, [kind], `${kind} ${edns}: ${best?.kind} ${best?.confidence}`);
  }
});

test('a client that asks for A alone, without EDNS and a search path, may be glibc or c-ares', () => {
  const id = drawn();
  const asked = walks((at) => ({ port: at, id: id() }), {}, ['']);
  const { best } = seen(asked.filter(({ type }) => type === 'A'));
  assert.deepEqual(best?.among.toSorted(), ['c-ares', 'glibc'], `${best?.confidence}`);
});

test('EDNS with 1200 bytes identifies glibc with edns0, even if it asks for A alone', () => {
  const id = drawn();
  const asked = walks((at) => ({ port: at, id: id(), edns: 'plain', udpSize: 1200 }), {}, ['']);
  const { best } = seen(asked.filter(({ type }) => type === 'A'));
  assert.deepEqual(best?.among, ['glibc'], `${best?.kind} ${best?.confidence}`);
});

test('two programs of one kind behind one address are recognised, though only one sends EDNS', () => {
  for (const kind of ['go', 'c-ares']) {
    const id = drawn();
    let port = 0;
    const asked = walks(
      (at, lookup) => ({
        ...{ port: kind === 'go' ? ++port : at, id: id(), afterMs: 0.2 },
        ...(lookup % 2 === 0 ? { edns: 'plain' as const } : {}),
      }),
      { apartMs: 7, first: 'either' },
      [''],
    );
    const { best } = seen(asked);
    assert.deepEqual(best?.among, [kind], `${kind}: ${best?.kind} ${best?.confidence}`);
  }
});

const servers = ['10.0.0.2', '10.0.0.3', '10.0.0.4'];

test('a client that rotates three servers is recognised by its order and its ids: A and AAAA to one server from one port, and to two from two', () => {
  const { integer } = seededRandom(3);
  let turn = 0;
  for (const [kind, way, turning, edns] of [
    // c-ares picks a random server for each question and has one socket per server.
    ['c-ares', 'drawn', 'A', 'cookie'],
    ['c-ares', 'drawn', 'A', undefined],
    // Up to 1.21, it moves on to the next server for each question.
    ['c-ares', 'next', 'A', undefined],
    ['go', 'next', 'either', 'plain'],
    // Both questions in a pair go to the same server, and pairs rotate.
    ['glibc', 'pair', 'A', undefined],
  ] as const) {
    const id = kind === 'glibc' ? ofClock() : drawn();
    let port = 0;
    let before: { readonly server: string; readonly port: number } | null = null;
    const asked = walks(
      (at) => {
        const ofPair = before !== null && turn % 2 === 1 ? before : null;
        const chosen =
          way === 'drawn' ? integer(3) : way === 'next' ? turn % 3 : at % servers.length;
        turn++;
        const server = servers[chosen]!;
        const shares = kind !== 'go' && ofPair?.server === server;
        before = { server, port: shares ? ofPair.port : ++port };
        return { ...before, id: id(), ...(edns === undefined ? {} : { edns }) };
      },
      { apartMs: 0.05, first: turning },
      [''],
    );
    const { best } = seen(asked);
    assert.deepEqual(
      best?.among,
      [kind],
      `${kind} ${way} ${edns}: ${best?.kind} ${best?.confidence}`,
    );
  }
});

const modelled = (
  resolver: string,
  resolvConf: string,
  fate: (passing: Passing) => Fate,
  seed: number,
): Promise<readonly Captured[]> =>
  play(
    [
      {
        ...{ address: '10.244.1.9', resolver, resolvConf },
        lookups: Array.from({ length: 8 }, (_, at) => ({
          atMs: 50 + at * 15_000,
          name: ['www.example.com', 'backend', 'redis.cache', 'nope.example.net'][at % 4]!,
        })),
      },
    ],
    fate,
    { seed },
  );

test('glibc, musl, Go and c-ares are recognised with any of their options', async () => {
  for (const [resolver, kind] of [
    ['glibc', 'glibc'],
    ['glibc@2.31', 'glibc'],
    ['musl', 'musl'],
    ['musl@1.2.3', 'musl'],
    ['go', 'go'],
    ['go@1.20', 'go'],
    ['c-ares', 'c-ares'],
    ['c-ares@1.18.1', 'c-ares'],
  ] as const)
    for (const options of ['', 'use-vc', 'single-request', 'single-request-reopen', 'edns0'])
      for (const snap of snaps) {
        const resolvConf = podResolvConf.replace('ndots:5', `ndots:5 ${options}`);
        const { best } = seenIn(await modelled(resolver, resolvConf, healthy, 3), snap);
        assert.deepEqual(
          best?.among,
          [kind],
          `${resolver} ${options} ${snap}: ${best?.confidence}`,
        );
      }
});

test('c-ares since 1.34.6 retries an unanswered query from a new port, and is recognised', async () => {
  for (const seed of [1, 2, 3]) {
    const packets = await modelled(
      'c-ares',
      'nameserver 10.96.0.10\n',
      (passing) => (passing.random.integer(6) === 0 ? { lost: true } : healthy(passing)),
      seed,
    );
    const { best } = seenIn(packets);
    assert.deepEqual(best?.among, ['c-ares'], `${seed}: ${best?.kind} ${best?.confidence}`);
  }
});
