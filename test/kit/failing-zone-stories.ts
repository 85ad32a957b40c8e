/** Zones whose queries always fail at the upstream. A cache in front of it repeats the failures immediately. */
import type { Captured } from './packets.ts';
import { healthy, play } from './story.ts';
import { asked, ends, everybody, inOrder, played, pods, type Story } from './story-parts.ts';

const POD = '10.244.2.4';
const UPSTREAM = '192.0.2.53';
const BROKEN = 'api.broken.example.';
/** The time for which CoreDNS caches a failure, in milliseconds. */
const KEPT_MS = 5000;

/** A client's queries for the broken name. The server queries its upstream again every five seconds. */
function broken(toMs: number, isKept: (atMs: number) => boolean): Captured[][] {
  return Array.from({ length: toMs / 250 }, (_, i) => {
    const tookMs = isKept(i * 250) ? 0.4 : 6;
    return asked(i * 250, ends('10.244.1.200', 30_000 + i), BROKEN, 500 + i, { rcode: 2, tookMs });
  });
}

/** One server's queries to another for a name, one per second. */
const between = (
  [from, to]: readonly [string, string],
  name: string,
  more: Parameters<typeof asked>[4],
  count = 12,
): Captured[][] =>
  Array.from({ length: count }, (_, i) =>
    asked(i * 1000 + 3, ends(from, 40_000 + i, to), name, 900 + i, more),
  );

const later = (ms: number, all: readonly Captured[][]): Captured[][] =>
  all.map((packets) => packets.map((each) => ({ ...each, timeMs: each.timeMs + ms })));

/** Other names, which the upstream always answers. */
const others = (from: string): Captured[][] =>
  Array.from({ length: 60 }, (_, i) =>
    asked(i * 200 + 9, ends(from, 50_000 + i, UPSTREAM), `www${i % 4}.example.com.`, 2000 + i),
  );

/** The same question, sent from the node to the upstream and, half a millisecond later, to the DNS pod. */
function rounds(count: number): Captured[][] {
  return Array.from({ length: count }, (_, i) => {
    const [atMs, port] = [1000 + Math.floor(i / 6) * 2000 + (i % 6), 45_000 + i];
    const end = { rcode: i % 6 === 5 ? 5 : 2, tookMs: 2100 - (i % 6) };
    return [
      ...asked(atMs, ends('172.18.0.3', port, UPSTREAM), BROKEN, 3000 + i, end),
      ...asked(atMs + 0.3, ends(UPSTREAM, port, POD), BROKEN, 4000 + i, { rcode: 2, tookMs: 2000 }),
    ];
  });
}

export const failingZoneStories: readonly Story[] = [
  {
    name: 'a name always fails at the upstream: the cache asks again every five seconds',
    code: 'ND4002',
    without: ['ND4007'],
    packets: async (seed) =>
      inOrder([
        await play(everybody(8), healthy, { seed }),
        ...broken(20_000, (atMs) => atMs % KEPT_MS !== 0),
      ]),
  },
  {
    name: 'the upstream itself fails for a name, and the DNS pod keeps each failure',
    code: 'ND4002',
    without: ['ND4007'],
    packets: async (seed) =>
      inOrder([
        await play(everybody(8), healthy, { seed }),
        ...broken(20_000, () => true),
        ...others(POD),
        ...between([POD, UPSTREAM], BROKEN, { rcode: 2, tookMs: 0.5 }, 4),
      ]),
  },
  {
    name: 'all names of a zone fail at an upstream that the capture does not show, one of them nearly always from a cache',
    code: 'ND4002',
    without: ['ND4007'],
    packets: async (seed) =>
      inOrder([
        await play(everybody(8), healthy, { seed }),
        ...broken(20_000, () => true),
        ...Array.from({ length: 80 }, (_, i) =>
          asked(i * 250 + 100, ends('10.244.1.200', 32_000 + i), 'db.broken.example.', 700 + i, {
            ...{ rcode: 2, tookMs: (i * 250) % KEPT_MS === 0 ? 6 : 0.4 },
          }),
        ),
      ]),
  },
  {
    name: 'for five seconds a cache keeps a failure, and then finds the name again',
    code: 'ND4002',
    without: ['ND4007'],
    packets: async (seed) =>
      inOrder([
        await play(everybody(8), healthy, { seed }),
        ...broken(KEPT_MS, () => true),
        ...broken(KEPT_MS, () => true).map((_, i) =>
          asked(6000 + i * 250, ends('10.244.1.200', 31_000 + i), BROKEN, 800 + i),
        ),
      ]),
  },
  {
    name: 'a secondary server gets no reply of its primary server, and the zone has expired',
    code: 'ND4057',
    without: ['ND4007', 'ND4002'],
    seen: /192\.0\.2\.53 asked 192\.0\.2\.88 5 times for the zone .* has most likely expired/,
    packets: () =>
      Promise.resolve(
        inOrder([
          ...others('172.18.0.3'),
          ...between(['172.18.0.3', UPSTREAM], BROKEN, { rcode: 2, tookMs: 0.2 }),
          ...between([UPSTREAM, '192.0.2.88'], 'broken.example.', { type: 'SOA', tookMs: null }, 5),
        ]),
      ),
  },
  {
    name: 'a primary server stops replying to its secondary, whose zone then expires, while its other zone is served',
    code: 'ND4057',
    without: ['ND4007', 'ND4002', 'ND3007'],
    seen: /still answers names of other zones/,
    packets: () =>
      Promise.resolve(
        inOrder([
          ...others('172.18.0.3'),
          ...between([UPSTREAM, '192.0.2.88'], 'broken.example.', { type: 'SOA', tookMs: 2 }, 3),
          ...later(4000, [
            ...between([UPSTREAM, '192.0.2.88'], 'broken.example.', { type: 'SOA', tookMs: null }),
          ]),
          ...between(['172.18.0.3', UPSTREAM], BROKEN, { tookMs: 0.2 }, 11),
          ...later(12_000, between(['172.18.0.4', UPSTREAM], BROKEN, { rcode: 2, tookMs: 0.2 })),
          ...later(12_000, others('172.18.0.3')),
        ]),
      ),
  },
  {
    name: 'the server that a zone is delegated to refuses its names, and the resolver fails',
    code: 'ND4002',
    without: ['ND4007'],
    seen: /^192\.0\.2\.9 answered REFUSED 12 times for these names/,
    packets: () =>
      Promise.resolve(
        inOrder([
          ...others('172.18.0.3'),
          ...between(['172.18.0.3', UPSTREAM], BROKEN, { rcode: 2, tookMs: 9 }),
          ...between([UPSTREAM, '192.0.2.9'], BROKEN, { rcode: 5, tookMs: 0.4 }),
        ]),
      ),
  },
  {
    name: 'a query goes round between the cluster and its upstream, which sees the node and not the DNS pod',
    code: 'ND4004',
    without: ['ND3013', 'ND4010'],
    seen: /^192\.0\.2\.53 queries 10\.244\.2\.4, and \d+ of these queries come back to it from .* while they are still unanswered/,
    packets: () => Promise.resolve(inOrder([...others('172.18.0.3'), ...rounds(12)])),
  },
  {
    name: 'clean: a resolver asks the server of a zone, and its client asks again for another pod',
    code: null,
    without: ['ND4004'],
    packets: () =>
      Promise.resolve(
        inOrder([
          ...others('172.18.0.3'),
          ...between(['172.18.0.3', UPSTREAM], BROKEN, { tookMs: 9 }, 30),
          ...between([UPSTREAM, '192.0.2.9'], BROKEN, { tookMs: 4 }, 30),
        ]),
      ),
  },
  {
    ...played(
      'no external name is answered, while cluster names are, because forwarding fails',
      'ND4002',
      () => pods('glibc', 4, { lookups: 20 }),
      (passing) =>
        passing.name.endsWith('.cluster.local.') ? healthy(passing) : { rcode: 2, tookMs: 3 },
    ),
    seen: /^No external name is answered, while cluster names are/,
  },
];
