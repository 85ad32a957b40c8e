/** Examples in which a consequence or a minor fault is easily mistaken for the cause. */
import { icmpError, type Captured } from './packets.ts';
import { healthy, type Passing } from './story.ts';
import { asked, at, ends, inOrder, played, pods, some, type Story } from './story-parts.ts';

const UPSTREAM = '192.0.2.53';
const SERVICE = '10.96.0.10';
const POD = '10.244.9.1';

const given = (
  name: string,
  code: string | null,
  packets: (seed: number) => readonly Captured[],
  more: Partial<Story> = {},
): Story => ({ name, code, ...more, packets: (seed) => Promise.resolve(packets(seed)) });

/** Clients of a DNS pod that queries its upstream for other names. Both respond quickly. */
function besides(count: number, everyMs: number): Captured[] {
  return inOrder(
    Array.from({ length: count }, (_, i) => {
      const client = ends(`10.244.1.${1 + (i % 3)}`, 30_000 + i, POD);
      return [
        asked(i * everyMs, client, `db${i % 5}.shop.svc.cluster.local.`, 5000 + i),
        asked(i * everyMs + 40, client, `h${i % 7}.example.com.`, 6000 + i, { tookMs: 5 }),
        asked(i * everyMs + 41, ends(POD, 40_000 + i, UPSTREAM), `h${i % 7}.example.com.`, 100 + i),
      ];
    }).flat(),
  );
}

/** The upstream needs three seconds to answer for one zone, by which time the DNS pod has closed its port. */
function slowZone(): Captured[] {
  return inOrder([
    besides(60, 500),
    ...Array.from({ length: 8 }, (_, i) => {
      const name = `${['git', 'ldap'][i % 2]!}.corp.example.`;
      const atMs = 300 + i * 3500;
      const [query, reply] = asked(atMs, ends(POD, 45_000 + i, UPSTREAM), name, 800 + i, {
        tookMs: 3200,
      });
      const failed = asked(atMs - 1, ends('10.244.1.1', 46_000 + i, POD), name, 900 + i, {
        rcode: 2,
        tookMs: 2004,
      });
      const icmp = icmpError(POD, reply!.bytes, 3, 3, UPSTREAM);
      return [query!, reply!, at(atMs + 3200.1, icmp), ...failed];
    }),
  ]);
}

/** The DNS pod retries lost queries. By the time it answers, its client has closed its port. */
function waitsForLost(): Captured[] {
  return inOrder([
    besides(60, 500),
    ...Array.from({ length: 10 }, (_, i) => {
      const atMs = 300 + i * 2900;
      const name = 'big.vendor.example.';
      const client = ends('10.244.1.1', 46_000 + i, POD);
      const [query, reply] = asked(atMs, client, name, 900 + i, { rcode: 2, tookMs: 4000 });
      return [
        query!,
        reply!,
        at(atMs + 4000.1, icmpError('10.244.1.1', reply!.bytes, 3, 3, POD)),
        ...asked(atMs + 1, ends(POD, 45_000 + 2 * i, UPSTREAM), name, 700 + i, { tookMs: null }),
        ...asked(atMs + 2000, ends(POD, 45_001 + 2 * i, UPSTREAM), name, 750 + i, { tookMs: null }),
      ];
    }),
  ]);
}

/** Three pods send many queries and one sends few. Replies to that one are lost at random. */
function lossOfOne(): Captured[] {
  return inOrder([
    besides(200, 150),
    ...Array.from({ length: 16 }, (_, i) =>
      asked(
        200 + i * 1800,
        ends('10.244.1.40', 47_000, POD),
        `db${i % 5}.shop.svc.cluster.local.`,
        50 + i,
        {
          tookMs: i % 3 === 1 ? null : 0.5,
        },
      ),
    ),
  ]);
}

/** A limit on waiting queries is reached, so each time, different names and types are refused. */
function refusedByLimit(): Captured[] {
  return inOrder([
    besides(120, 250),
    ...Array.from({ length: 30 }, (_, i) => {
      const client = ends(`10.244.1.${1 + (i % 3)}`, 48_000 + i, POD);
      const isOne = i < 3;
      const name = isOne ? 'cdn.shop.example.' : `h${i % 7}.example.com.`;
      const type = isOne || i % 4 === 0 ? 'AAAA' : 'A';
      const atMs = 450 + (isOne ? i : i * 900);
      const slow = ends('10.244.1.2', 49_000 + i, POD);
      return [
        ...asked(atMs, client, name, 300 + i, { type, rcode: 5 }),
        ...asked(atMs + 100, slow, `h${i % 7}.example.com.`, 400 + i, { tookMs: 1500 }),
        ...asked(atMs + 130, client, 'cdn.shop.example.', 500 + i, { tookMs: 1200 }),
      ];
    }),
  ]);
}

/** Queries to the upstream are lost, and one name also fails to resolve. */
const isLost = (passing: Passing): boolean => passing.server === SERVICE && some(passing, 0.3);

export const causeStories: readonly Story[] = [
  given('one zone is slow upstream, and the DNS pod does not wait for it', 'ND4003', slowZone, {
    seen: /names in corp\.example\./,
    without: ['ND2012'],
  }),
  given('a DNS pod answers late because its own queries are lost', 'ND3010', waitsForLost, {
    without: ['ND2012'],
  }),
  given('one pod of several loses replies at random', 'ND3013', lossOfOne, {
    seen: /All of them are from 10\.244\.1\.40, which sent 16 queries/,
  }),
  given('a limit refuses A and AAAA of several names', 'ND4010', refusedByLimit, {
    without: ['ND8002'],
  }),
  {
    ...played(
      'many queries are lost, and one name with few queries is a dangling alias',
      'ND3013',
      () => pods('glibc', 6, { lookups: 14, names: ['www.example.com', 'old.example.com', 'db'] }),
      (passing) =>
        isLost(passing)
          ? { lost: true }
          : passing.name === 'old.example.com.'
            ? { rcode: 3, cname: 'gone.example.net.', tookMs: 5 }
            : healthy(passing),
    ),
    also: ['ND4032'],
  },
];
