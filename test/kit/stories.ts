/**
 * The documented Kubernetes DNS incidents as packets. Each has the queries, the network's behaviour, and the required
 * finding.
 */
import { seededRandom } from '../../src/server/base/random.ts';
import type { Captured } from './packets.ts';
import {
  addressRecord,
  icmpError,
  back,
  dnsMessage,
  fragments,
  TCP,
  tcpPacket,
  udpPacket,
  type Ends,
} from './packets.ts';
import { healthy, play, podResolvConf } from './story.ts';
import { againStories } from './again-stories.ts';
import { causeStories } from './cause-stories.ts';
import { contentStories } from './content-stories.ts';
import { bothSidesStories } from './both-sides-stories.ts';
import { failingZoneStories } from './failing-zone-stories.ts';
import { fewQueriesStories } from './few-queries-stories.ts';
import { handfulStories } from './handful-stories.ts';
import { lateStories } from './late-stories.ts';
import { newNameStories } from './new-name-stories.ts';
import { partStories } from './part-stories.ts';
import { sameWayStories } from './same-way-stories.ts';
import { searchStories } from './search-stories.ts';
import { outsideIsSilent, shortenedStories } from './shortened-stories.ts';
import { connections, socketStories } from './socket-stories.ts';
import { standstillStories } from './standstill-stories.ts';
import { waitingStories } from './waiting-stories.ts';
import {
  asked,
  at,
  begun,
  corpResolvConf,
  dbTruncated,
  ends,
  everybody,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';

/** An exchange in which the reply repeats the question in lower case. */
function spelled(atMs: number, port: number, name: string, id: number): Captured[] {
  const way = ends('10.244.1.77', port);
  const folded = name.toLowerCase();
  const reply = { id, reply: true, answer: [addressRecord(folded, '192.0.2.1')] };
  return [
    at(atMs, udpPacket(way, dnsMessage(name, 'A', { id }), (atMs + port) & 0xffff)),
    at(
      atMs + 0.7,
      udpPacket(back(way), dnsMessage(folded, 'A', reply), (atMs + port + 1) & 0xffff),
    ),
  ];
}

/**
 * A token bucket with a rate in packets per second and a size of `burst`.
 * @returns true if a packet passes at this time in milliseconds; times must not decrease between calls
 */
function tokenBucket(rate: number, burst: number): (atMs: number) => boolean {
  let tokens = burst;
  let lastMs = 0;
  return (atMs) => {
    tokens = Math.min(burst, tokens + ((atMs - lastMs) * rate) / 1000);
    lastMs = atMs;
    const passes = tokens >= 1;
    if (passes) tokens--;
    return passes;
  };
}

/** Bursts from a few pods that pass through a token bucket with a rate in packets per second and a size of `burst`. */
function limitedBursts(seed: number, rate: number, burst: number): Captured[] {
  const packets: Captured[][] = [];
  const lets = tokenBucket(rate, burst);
  for (let wave = 0; wave < 14; wave++)
    for (let i = 0; i < 20 + ((wave * 37 + seed * 11) % 60); i++) {
      const atMs = wave * 850 + i * 2.5;
      const passes = lets(atMs);
      const way = ends(`10.244.1.${30 + (i % 2)}`, 20_000 + wave * 200 + i);
      const id = wave * 100 + i;
      const type = i % 4 < 2 ? 'A' : 'AAAA';
      packets.push(
        asked(atMs, way, `${names[(i >> 2) % 7]!}.`, id, { type, tookMs: passes ? 0.7 : null }),
      );
    }
  return inOrder(packets);
}

/**
 * About ten thousand queries from a DNS pod to its upstream, in bursts of all sizes. The limit is 600 packets per
 * second with a burst of 100.
 */
function longLimit(): Captured[] {
  const packets: Captured[][] = [];
  const lets = tokenBucket(600, 100);
  let n = 0;
  for (let second = 0; second < 20; second++) {
    const isQuiet = second < 10;
    const asks = isQuiet ? 450 : 100 + ((second * 487) % 900);
    for (let i = 0; i < asks; i++, n++) {
      const atMs = second * 1000 + (i * (isQuiet ? 1000 : 200 + ((second * 173) % 700))) / asks;
      const passes = lets(atMs);
      const way = ends('10.244.9.9', 1024 + n, '192.0.2.53');
      const type = n % 2 === 0 ? 'A' : 'AAAA';
      packets.push(
        asked(atMs, way, `n${n % 700}.example.com.`, n, { type, tookMs: passes ? 0.5 : null }),
      );
    }
  }
  return inOrder(packets);
}

/** The name with some letters capitalised. */
function mixed(name: string, by: number): string {
  return name.replace(/[a-z]/g, (letter, i: number) =>
    (i * 7 + by) % 3 === 0 ? letter.toUpperCase() : letter,
  );
}

let long: Promise<readonly Captured[]> | null = null;

const addressOf = (name: string): string =>
  `192.0.2.${Buffer.from(name).reduce((sum, byte) => sum + byte, 0) % 250}`;

/** All incidents that can be recognised from packets, with their sections in the catalogue. */
export const stories: readonly Story[] = [
  ...againStories,
  ...causeStories,
  ...partStories,
  ...contentStories,
  ...newNameStories,
  ...bothSidesStories,
  ...failingZoneStories,
  ...fewQueriesStories,
  ...handfulStories,
  ...lateStories,
  ...sameWayStories,
  ...socketStories,
  ...searchStories,
  ...shortenedStories,
  ...standstillStories,
  ...waitingStories,
  played(
    'S1 conntrack race',
    'ND3001',
    () => everybody(12),
    (passing) => {
      const raced = passing.sincePortMs < 5 && passing.attempt === 1 && some(passing, 0.15);
      return raced ? { lost: true } : healthy(passing);
    },
  ),
  played(
    'S1 conntrack race, counted by the kernel',
    'ND3001',
    () => pods('glibc', 8, { lookups: 8 }),
    (passing) => {
      const raced = passing.sincePortMs < 5 && passing.attempt === 1 && some(passing, 0.2);
      return raced ? { lost: true } : healthy(passing);
    },
    ['cpu=0 found=1 invalid=0 insert=0 insert_failed=42 drop=42 early_drop=0 clash_resolve=0'],
  ),
  {
    name: 'S3 stale conntrack entry',
    code: 'ND3002',
    packets: async (seed) => {
      const others = await play(everybody(16), healthy, { seed });
      const proxy = Array.from({ length: 60 }, (_, i) =>
        asked(
          i * 130,
          ends('10.244.1.200', 40_000),
          `${names[i % 5]!.replace(/^([a-z]+)$/, '$1.shop.svc.cluster.local')}.`,
          100 + seed + i,
          {
            tookMs: i < 20 ? 0.6 : null,
          },
        ),
      );
      const fresh = Array.from({ length: 8 }, (_, i) =>
        asked(i * 1000, ends('10.244.1.200', 41_000 + i), 'www.example.com.', 9000 + i),
      );
      return inOrder([others, ...proxy, ...fresh]);
    },
  },
  {
    name: 'S4 a socket opened before the service existed',
    code: 'ND3017',
    packets: async (seed) => {
      const others = await play(everybody(10), healthy, { seed });
      const proxy = Array.from({ length: 30 }, (_, i) =>
        asked(i * 250, ends('10.244.1.200', 40_000), `${names[i % 2]!}.`, 100 + seed + i, {
          tookMs: null,
        }),
      );
      return inOrder([others, ...proxy]);
    },
  },
  played(
    'S6 overload',
    'ND7001',
    () => pods('go', 12, { lookups: 20, everyMs: 400 }),
    (passing) => {
      const load = passing.atMs / 8000;
      if (load < 0.4) return healthy(passing);
      if (some(passing, Math.min(0.5, (load - 0.4) * 0.8))) return { lost: true };
      return { ...healthy(passing), tookMs: 300 + 2500 * (load - 0.4) };
    },
  ),
  {
    name: 'S6 overload: a server processes one query after the other, and answers them all too late',
    code: 'ND7001',
    packets: (seed) => {
      let freeMs = 0;
      return play(
        [
          ...pods('go', 6, { lookups: 8, everyMs: 900 }),
          ...pods('glibc', 6, { from: 40, lookups: 8, everyMs: 900 }),
        ],
        (passing) => {
          freeMs = Math.max(freeMs, passing.atMs) + 35;
          return { ...healthy(passing), tookMs: freeMs - passing.atMs };
        },
        { seed },
      );
    },
  },
  {
    name: 'S23 not DNS: no packet of any kind gets through for seconds',
    code: 'ND3090',
    packets: async (seed) => {
      const isAway = (ms: number): boolean => ms > 3000 && ms < 6200;
      const dns = await play(
        everybody(14),
        (passing) => (isAway(passing.atMs) ? { lost: true } : healthy(passing)),
        { seed },
      );
      return inOrder([dns, connections(80, 120, (i) => isAway(i * 120))]);
    },
  },
  {
    name: 'S7 packet cap of the cloud resolver',
    code: 'ND4001',
    packets: async (seed) => {
      const packets: Captured[][] = [];
      const cap = 300;
      for (let second = 0; second < 12; second++) {
        const rate = second < 2 ? 200 : 450 + second * 20;
        for (let i = 0; i < rate; i++) {
          const from = ends(
            `10.244.2.${(i % 4) + 1}`,
            1024 + ((second * 7919 + i * 13 + seed) % 60_000),
            '10.0.0.2',
          );
          packets.push(
            asked(
              second * 1000 + (i * 1000) / rate,
              from,
              `h${i % 400}.example.com.`,
              (second * 700 + i) & 0xffff,
              {
                // A fixed number of packets pass per second, evenly spaced.
                tookMs:
                  Math.floor((i + 1) * Math.min(1, cap / rate)) >
                  Math.floor(i * Math.min(1, cap / rate))
                    ? 0.8
                    : null,
              },
            ),
          );
        }
      }
      return inOrder(packets);
    },
  },
  played(
    'S8 a search domain of SERVFAIL stops Alpine',
    'ND2003',
    () => [
      ...pods('glibc', 3, { resolvConf: corpResolvConf }),
      ...pods('musl', 4, { from: 40, resolvConf: corpResolvConf }),
    ],
    (passing) =>
      passing.name.endsWith('.corp.example.') ? { rcode: 2, tookMs: 1 } : healthy(passing),
  ),
  played(
    'S8 NODATA in a search domain stops Alpine',
    'ND2002',
    () => [
      ...pods('glibc', 2, {
        resolvConf: corpResolvConf,
        names: ['www.example.com', 'api.example.org'],
      }),
      ...pods('musl', 4, { from: 40, resolvConf: corpResolvConf }),
    ],
    (passing) =>
      passing.name.endsWith('.corp.example.') ? { addresses: [], tookMs: 1 } : healthy(passing),
  ),
  played(
    'S25 Node.js looks up in four threads, and simultaneous lookups wait',
    'ND2009',
    () => [
      ...pods('go', 3, { from: 80, lookups: 12, names: ['orders', 'carts'] }),
      {
        address: '10.244.1.9',
        resolver: 'glibc',
        resolvConf: 'nameserver 10.96.0.10\n',
        // Batches of twenty, where each lookup starts when the one four places before it has ended.
        lookups: Array.from({ length: 120 }, (_, i) => ({
          atMs: 100 + Math.floor(i / 20) * 1500 + Math.floor((i % 20) / 4) * 40.4 + (i % 4) * 0.2,
          name: names[i % names.length]!,
        })),
      },
    ],
    (passing) =>
      passing.client === '10.244.1.9'
        ? { addresses: passing.type === 'A' ? [addressOf(passing.name)] : [], tookMs: 40 }
        : healthy(passing),
  ),
  played(
    'S9 wildcard in a search domain',
    'ND2004',
    () => [
      ...pods('glibc', 4, { resolvConf: corpResolvConf }),
      ...pods('go', 2, { from: 40, resolvConf: corpResolvConf }),
    ],
    (passing) =>
      passing.name.endsWith('.corp.example.')
        ? { addresses: passing.type === 'A' ? ['203.0.113.9'] : [], tookMs: 1 }
        : healthy(passing),
  ),
  played(
    'S10 truncated, and TCP is dropped',
    'ND3011',
    () => [...everybody(3), ...pods('go', 2, { from: 120, names: ['db'], lookups: 3 })],
    (passing) => {
      if (passing.protocol === 'tcp') return { tcp: 'dropped' };
      return dbTruncated(passing, 'A');
    },
  ),
  played(
    'S10 truncated, and TCP is refused',
    'ND3011',
    () => [...everybody(3), ...pods('glibc', 2, { from: 120, names: ['db'], lookups: 3 })],
    (passing) => {
      if (passing.protocol === 'tcp') return { tcp: 'refused' };
      return dbTruncated(passing, 'A');
    },
  ),
  played(
    'S10 truncated, and TCP is accepted, but nothing is answered over it',
    'ND3011',
    // glibc would wait for a TCP reply for as long as the connection is open.
    () => [...pods('go', 5), ...pods('go', 2, { from: 120, names: ['db'], lookups: 3 })],
    (passing) =>
      passing.protocol === 'tcp' && passing.type !== 'TCP'
        ? { lost: true }
        : dbTruncated(passing, 'A'),
  ),
  {
    name: 'S10 fragments are dropped',
    code: 'ND3012',
    packets: async (seed) => {
      const others = await play(everybody(12), healthy, { seed });
      const large = Array.from({ length: 5 }, (_, i): Captured[] => {
        const way = ends('10.244.1.200', 45_000 + i);
        const edns = { udpSize: 4096, version: 0, dnssecOk: true, options: [] };
        const query = dnsMessage('large.example.com.', 'TXT', { id: 70 + i, edns });
        const [first] = fragments(back(way), Buffer.alloc(2500, 1), 1440, 300 + i + seed);
        return [at(i * 900, udpPacket(way, query, 90 + i)), at(i * 900 + 1, first!)];
      });
      return inOrder([others, ...large]);
    },
  },
  {
    name: 'S11 two servers forward to each other',
    code: 'ND4004',
    packets: async (seed) =>
      inOrder(
        Array.from({ length: 60 }, (_, i) => {
          const [one, other] =
            i % 2 === 0 ? ['10.244.0.5', '10.0.0.53'] : ['10.0.0.53', '10.244.0.5'];
          return asked(
            i * 120,
            ends(one!, 20_000 + i + seed, other!),
            'intranet.corp.example.',
            500 + i,
            { tookMs: null },
          );
        }),
      ),
  },
  {
    name: 'two servers forward to each other: losses and refusals of their other clients have the same cause',
    code: 'ND4004',
    without: ['ND3005', 'ND3013', 'ND4010'],
    packets: async (seed) => {
      const [one, two, other] = ['10.244.0.5', '10.244.0.6', '10.0.0.53'];
      const healthyOnes = await play(pods('glibc', 3), healthy, { seed });
      const round = Array.from({ length: 60 }, (_, i) =>
        asked(
          i * 90,
          i % 2 === 0 ? ends(one, 20_000 + i, other) : ends(other, 20_000 + i, one),
          'intranet.corp.example.',
          500 + i,
          { tookMs: null },
        ),
      );
      const others = Array.from({ length: 14 }, (_, i) => {
        const name = `host${i}.corp.example.`;
        const [fails, waits] = [{ rcode: 5, tookMs: 2000 }, { tookMs: null }];
        return [
          ...asked(i * 300, ends('10.244.1.70', 40_000 + i, two), name, 900 + i, fails),
          ...asked(i * 300 + 1, ends(two, 50_000 + i, other), name, 1900 + i, waits),
          ...asked(i * 300 + 2, ends(other, 60_000 + i, one), name, 2900 + i, waits),
          ...asked(i * 300 + 3, ends('10.244.1.71', 30_000 + i, two), name, 3900 + i, waits),
        ];
      });
      return inOrder([healthyOnes, ...round, ...others]);
    },
  },
  {
    name: 'two servers forward one zone to each other: one of them loses queries for other names for another reason',
    code: 'ND4004',
    also: ['ND3061'],
    packets: async (seed) => {
      const [one, other] = ['10.244.0.5', '10.0.0.53'];
      const healthyOnes = await play(pods('glibc', 3), healthy, { seed });
      const round = Array.from({ length: 200 }, (_, i) =>
        asked(
          i * 90,
          i % 2 === 0 ? ends(one, 20_000 + i, other) : ends(other, 20_000 + i, one),
          'intranet.corp.example.',
          500 + i,
          { tookMs: null },
        ),
      );
      // One packet in eight is lost, whatever its sender and name.
      const random = seededRandom(seed);
      const others = Array.from({ length: 400 }, (_, i) => {
        const tookMs = random.integer(8) === 0 ? null : 4;
        const way = ends(`10.244.1.${70 + random.integer(12)}`, 30_000 + i, other);
        return asked(i * 45, way, `www${random.integer(60)}.example.com.`, 900 + i, { tookMs });
      });
      return inOrder([healthyOnes, ...round, ...others]);
    },
  },
  {
    name: 'a server repeatedly probes its upstream, which queries it for cluster names',
    code: 'ND3005',
    without: ['ND4004'],
    packets: async (seed) => {
      const [server, upstream] = ['10.244.0.5', '10.0.0.53'];
      const looks = Array.from({ length: 30 }, (_, i) =>
        asked(i * 500, ends(server, 20_000 + i + seed, upstream), '.', 500 + i, {
          type: 'NS',
          tookMs: null,
        }),
      );
      const found = Array.from({ length: 40 }, (_, i) =>
        asked(
          i * 350,
          ends(upstream, 30_000 + i + seed, server),
          'redis.cache.svc.cluster.local.',
          900 + i,
          { tookMs: 1 },
        ),
      );
      return inOrder([...looks, ...found]);
    },
  },
  {
    name: 'S11 two servers forward to each other until one is full, and refuses',
    code: 'ND4004',
    without: ['ND4010'],
    packets: async (seed) =>
      inOrder(
        Array.from({ length: 120 }, (_, i) => {
          const [pod, one, other] = ['10.244.1.20', '10.244.0.5', '10.0.0.53'];
          const [from, to] = [
            [pod, one],
            [one, other],
            [other, one],
          ][i % 3]!;
          const way = ends(from!, 20_000 + i + seed, to);
          return asked(i * 120, way, 'intranet.corp.example.', 500 + i, { rcode: 5 });
        }),
      ),
  },
  {
    name: 'S11 three servers forward to each other in a ring',
    code: 'ND4004',
    packets: async (seed) => {
      const ring = ['10.244.0.5', '10.0.0.53', '10.0.0.54'];
      const others = await play(pods('glibc', 3), healthy, { seed });
      const round = Array.from({ length: 90 }, (_, i) =>
        asked(
          i * 40,
          ends(ring[i % 3]!, 20_000 + i + seed, ring[(i + 1) % 3]!),
          'erp.legacy.example.',
          500 + i,
          { tookMs: null },
        ),
      );
      return inOrder([others, ...round]);
    },
  },
  played(
    'S12 a rollout',
    'ND3007',
    () => everybody(14),
    (passing) => (passing.atMs > 3000 && passing.atMs < 6200 ? { lost: true } : healthy(passing)),
  ),
  played(
    'S12 one of two DNS pods dies',
    'ND3008',
    () => everybody(8),
    (passing) => {
      const behind = passing.port % 2 === 0 ? '10.244.3.2' : '10.244.4.2';
      return behind === '10.244.4.2' ? { lost: true, behind } : { ...healthy(passing), behind };
    },
  ),
  played(
    'S13 the node-local cache is dead',
    'ND3006',
    () =>
      pods('glibc', 4, {
        resolvConf: podResolvConf.replace('10.96.0.10', '169.254.20.10'),
        lookups: 3,
        everyMs: 3000,
      }),
    () => ({ unreachable: true, lost: true }),
  ),
  played(
    'S13 the node-local cache is silent',
    'ND3006',
    () =>
      pods('go', 4, {
        resolvConf: podResolvConf.replace('10.96.0.10', '169.254.20.10'),
        lookups: 3,
        everyMs: 3000,
      }),
    () => ({ lost: true }),
  ),
  played(
    'a name server that is down',
    'ND3005',
    () =>
      pods('glibc', 5, {
        resolvConf:
          'nameserver 10.0.0.99\nnameserver 10.96.0.10\nsearch shop.svc.cluster.local\noptions ndots:5\n',
      }),
    (passing) => (passing.server === '10.0.0.99' ? { lost: true } : healthy(passing)),
  ),
  played(
    'S14 autopath disagrees',
    'ND8001',
    () => pods('glibc', 6, { names: ['www.example.com', 'api.example.org'], lookups: 8 }),
    (passing) => {
      const behind = passing.random.integer(2) === 0 ? '10.244.3.2' : '10.244.4.2';
      if (!/^(www|api)\.example\.(com|org)\.shop\.svc/.test(passing.name))
        return { ...healthy(passing), behind };
      if (behind === '10.244.4.2') return { rcode: 3, tookMs: 0.4, behind };
      const cname = passing.name.replace('shop.svc.cluster.local.', '');
      return {
        cname,
        addresses: passing.type === 'A' ? ['192.0.2.10'] : ['2001:db8::1'],
        tookMs: 2,
        behind,
      };
    },
  ),
  {
    name: 'S15 a new name is cached as missing',
    code: 'ND8003',
    packets: async (seed) => {
      const others = await play(everybody(4), healthy, { seed });
      const waiting = Array.from({ length: 40 }, (_, i) => {
        const ttl = 30 - i;
        return asked(
          i * 1000,
          ends('10.244.1.200', 30_000 + i),
          'new.shop.svc.cluster.local.',
          700 + i,
          i < 30 ? { rcode: 3, ttl } : {},
        );
      });
      return inOrder([others, ...waiting]);
    },
  },
  {
    name: 'S16 a zone is emptied',
    code: 'ND4006',
    packets: async (seed) =>
      inOrder(
        Array.from({ length: 240 }, (_, i) =>
          asked(
            i * 500,
            ends(`10.244.1.${(i % 9) + 1}`, 30_000 + i),
            `svc${(i + seed) % 12}.example.com.`,
            700 + i,
            i < 120 ? { tookMs: 8 } : { rcode: 3, tookMs: 8 },
          ),
        ),
      ),
  },
  {
    name: 'S16 SERVFAIL is cached',
    code: 'ND4007',
    packets: async (seed) => {
      const others = await play(everybody(8), healthy, { seed });
      const stuck = Array.from({ length: 40 }, (_, i) =>
        asked(
          i * 300,
          ends(`10.244.1.${(i % 4) + 200}`, 30_000 + i),
          'stuck.example.net.',
          700 + i,
          { rcode: 2, tookMs: 0.3 },
        ),
      );
      return inOrder([others, ...stuck]);
    },
  },
  played(
    'S17 no connection to the API server',
    'ND5001',
    () => pods('go', 6, { lookups: 8 }),
    (passing) =>
      passing.name.endsWith('.cluster.local.') ? { rcode: 2, tookMs: 0.4 } : healthy(passing),
  ),
  played(
    'S18 AAAA answered NXDOMAIN',
    'ND8002',
    () => everybody(6),
    (passing) =>
      passing.type === 'AAAA' && (healthy(passing).rcode ?? 0) === 0
        ? { rcode: 3, tookMs: 0.3 }
        : healthy(passing),
  ),
  played(
    'S19 all AAAA are dropped',
    'ND3009',
    () => [...pods('glibc', 3, { lookups: 2 }), ...pods('go', 2, { from: 40, lookups: 2 })],
    (passing) =>
      passing.type === 'AAAA' && !passing.name.endsWith('.cluster.local.')
        ? { lost: true }
        : healthy(passing),
  ),
  played(
    'S19 AAAA of one name is dropped',
    'ND3009',
    () => everybody(6),
    (passing) =>
      passing.type === 'AAAA' && passing.name === 'api.example.org.'
        ? { lost: true }
        : healthy(passing),
  ),
  {
    name: 'S20 the conntrack table is full, according to the kernel',
    code: 'ND3003',
    lines: [
      '[12345.678901] nf_conntrack: nf_conntrack: table full, dropping packet',
      'net.netfilter.nf_conntrack_count = 262144',
      'net.netfilter.nf_conntrack_max = 262144',
    ],
    packets: (seed) =>
      play(
        everybody(10),
        (passing) =>
          passing.attempt === 1 && some(passing, 0.12) ? { lost: true } : healthy(passing),
        { seed },
      ),
  },
  played(
    'S21 DNS pods of other nodes are unreachable',
    'ND3008',
    () => everybody(8),
    (passing) => {
      const behind = ['10.244.1.250', '10.244.4.2', '10.244.5.2'][passing.port % 3]!;
      return behind === '10.244.1.250' ? { ...healthy(passing), behind } : { lost: true, behind };
    },
  ),
  {
    name: 'S23 not DNS: other connections are lost too',
    code: 'ND3090',
    packets: async (seed) => {
      const dns = await play(
        everybody(10),
        (passing) =>
          passing.attempt === 1 && some(passing, 0.06) ? { lost: true } : healthy(passing),
        { seed },
      );
      const others = Array.from({ length: 200 }, (_, i): Captured[] => {
        const way: Ends = {
          from: `10.244.1.${(i % 9) + 1}`,
          fromPort: 33_000 + i,
          to: `10.96.7.${(i % 20) + 1}`,
          toPort: 443,
        };
        const syn = tcpPacket(way, 100, TCP.SYN);
        const again = (i + seed) % 14 === 0;
        const answer = at(i * 40 + (again ? 1001 : 1), tcpPacket(back(way), 1, TCP.SYN | TCP.ACK));
        return again
          ? [at(i * 40, syn), at(i * 40 + 1000, syn), answer]
          : [at(i * 40, syn), answer];
      });
      return inOrder([dns, ...others]);
    },
  },
  played(
    'S24 replies come from another address',
    'ND3016',
    () => pods('glibc', 3, { lookups: 4 }),
    (passing) => ({ ...healthy(passing), from: '10.244.3.2' }),
  ),
  played(
    'S27 upstream servers with different views',
    'ND4005',
    () =>
      pods('go', 5, {
        lookups: 10,
        resolvConf: 'nameserver 10.96.0.10\nsearch .\noptions ndots:1\n',
        names: ['git.corp.example.com', 'wiki.corp.example.com', 'www.example.com'],
      }),
    (passing) => {
      const behind = passing.random.integer(2) === 0 ? '10.0.0.2' : '9.9.9.9';
      if (!passing.name.includes('.corp.')) return { ...healthy(passing), behind };
      return behind === '9.9.9.9'
        ? { rcode: 3, tookMs: 9, behind }
        : { addresses: passing.type === 'A' ? ['10.20.0.4'] : ['2001:db8::4'], tookMs: 2, behind };
    },
  ),
  played(
    'S28 a policy cuts some pods off',
    'ND3004',
    () => [
      ...pods('go', 5, { lookups: 8, everyMs: 1500 }),
      ...pods('glibc', 3, { from: 60, lookups: 3, everyMs: 2000 }),
    ],
    (passing) =>
      passing.client.endsWith('.60') ||
      passing.client.endsWith('.61') ||
      passing.client.endsWith('.62')
        ? { lost: true }
        : healthy(passing),
  ),
  played(
    'S28 the pods that are cut off continue when the others are done',
    'ND3004',
    () => [
      ...pods('go', 4, { lookups: 4 }),
      ...pods('musl', 2, { from: 60, lookups: 6, everyMs: 2500 }),
    ],
    (passing) => (/\.6[01]$/.test(passing.client) ? { lost: true } : healthy(passing)),
  ),
  played(
    'a zone that no server answers for',
    'ND3010',
    () => [
      ...everybody(5),
      ...pods('go', 3, { from: 130, lookups: 4, names: ['shop.partner.test', 'www.example.com'] }),
    ],
    (passing) => (passing.name === 'shop.partner.test.' ? { lost: true } : healthy(passing)),
  ),
  outsideIsSilent,
  played(
    'no server outside of the cluster answers, seen from one pod that has time for three lookups',
    'ND3010',
    () => [
      ...pods('glibc', 1, {
        lookups: 5,
        everyMs: 21_000,
        resolvConf: corpResolvConf,
        names: ['backend', 'redis.cache', 'www.example.com', 'api.example.org'],
      }),
    ],
    (passing) => (passing.name.endsWith('.cluster.local.') ? healthy(passing) : { lost: true }),
  ),
  played(
    'a search domain that no server answers for',
    'ND2003',
    () => [
      ...pods('go', 4, { resolvConf: corpResolvConf }),
      ...pods('glibc', 3, { from: 40, resolvConf: corpResolvConf }),
    ],
    (passing) => (passing.name.endsWith('.corp.example.') ? { lost: true } : healthy(passing)),
  ),
  played(
    'loss by chance',
    'ND3013',
    () => everybody(14),
    (passing) => (some(passing, 0.04) ? { lost: true } : healthy(passing)),
  ),
  played(
    'a server that fails',
    'ND4002',
    () => pods('go', 6, { lookups: 8 }),
    (passing) => (some(passing, 0.4) ? { rcode: 2, tookMs: 40 } : healthy(passing)),
  ),

  played('clean: pods of all sorts', null, () => everybody(8), healthy),
  played('clean: glibc alone', null, () => pods('glibc', 8, { lookups: 10 }), healthy),
  played('clean: Alpine alone', null, () => pods('musl', 8, { lookups: 10 }), healthy),
  played(
    'clean: c-ares and evdns',
    null,
    () => [...pods('c-ares', 4), ...pods('evdns', 3, { from: 40 })],
    healthy,
  ),
  played(
    'clean: two pods behind the service',
    null,
    () => everybody(8),
    (passing) => ({
      ...healthy(passing),
      behind: passing.port % 2 === 0 ? '10.244.3.2' : '10.244.4.2',
    }),
  ),
  played(
    'clean: names that do not exist',
    null,
    () => pods('glibc', 6, { names: ['nowhere.invalid', 'no-service', 'www.example.com'] }),
    healthy,
  ),
  played(
    'clean: a slow upstream',
    null,
    () => everybody(6),
    (passing) => {
      const fate = healthy(passing);
      return passing.name.endsWith('.cluster.local.')
        ? fate
        : { ...fate, tookMs: 60 + passing.random.integer(80) };
    },
  ),
  ...[0, 64].map((bytes): Story => ({
    name: `gRPC asks for configurations and load balancers with the whole search path${bytes === 0 ? '' : ', and the capture has the beginnings of packets'}`,
    code: 'ND2005',
    packets: async (seed) => {
      const others = await play(
        pods('go', 2, { lookups: 6, names: ['db', 'redis.cache'] }),
        healthy,
        {
          seed,
        },
      );
      const domains = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
      const extra = ['orders.shop', 'cart.shop', 'mail.shop'].flatMap((service, which) =>
        Array.from({ length: 12 }, (_, turn) =>
          ['TXT _grpc_config', 'SRV _grpclb._tcp'].flatMap((what, half) =>
            domains.flatMap((domain, step) => {
              const [type, prefix] = what.split(' ') as [string, string];
              const n = ((which * 12 + turn) * 2 + half) * 4 + step;
              const way = ends('10.244.1.90', 30_000 + n);
              return asked(
                turn * 350 + which * 40 + step * 2,
                way,
                `${prefix}.${service}.${domain}`,
                n + 7,
                {
                  type,
                  rcode: 3,
                },
              );
            }),
          ),
        ).flat(),
      );
      const packets = inOrder([others, extra]);
      return bytes === 0 ? packets : begun(packets, bytes);
    },
  })),
  {
    name: 'S6 overload: two DNS pods of one service are overloaded from the first second on',
    code: 'ND7001',
    packets: (seed) => {
      const free = [0, 0];
      return play(
        [
          ...pods('go', 14, { lookups: 10, everyMs: 700 }),
          ...pods('glibc', 14, { from: 40, lookups: 10, everyMs: 700 }),
        ],
        (passing) => {
          // Connection tracking assigns each socket to one of them. Packets that do not fit into the queue are lost.
          const pod = (passing.port + passing.client.length) % 2;
          const freeMs = Math.max(free[pod]!, passing.atMs) + 22 + passing.random.integer(20);
          const behind = `10.244.9.${pod + 1}`;
          if (freeMs - passing.atMs > 1200) return { lost: true, behind };
          free[pod] = freeMs;
          return { ...healthy(passing), tookMs: freeMs - passing.atMs, behind };
        },
        { seed },
      );
    },
  },
  {
    name: 'S19 a limit on packets that bursts occasionally exceed, in a capture of nearly ten thousand queries',
    code: 'ND4001',
    packets: () => (long ??= Promise.resolve(longLimit())),
  },
  {
    name: 'S11 a DNS pod queries its own service, and gets the queries from the translated address of its node',
    code: 'ND4004',
    packets: async (seed) => {
      const others = await play(pods('glibc', 2, { lookups: 3 }), healthy, { seed });
      const packets: Captured[] = [...others];
      for (let i = 0; i < 400; i++) {
        const way = ends('10.244.1.53', 30_000 + i);
        const bytes = dnsMessage(`${names[i % 2]!}.corp.example.`, 'A', { id: 900 + i });
        packets.push(at(200 + i * 8, udpPacket(way, bytes, 10 + i)));
        const inner = { ...way, from: '169.254.1.1', to: '10.244.1.53' };
        packets.push(at(200.02 + i * 8, udpPacket(inner, bytes, 10 + i, 63)));
      }
      return packets.toSorted((one, other) => one.timeMs - other.timeMs);
    },
  },
  played(
    'S15 a pod uses another resolver, which does not know the cluster',
    'ND2007',
    () => [
      ...pods('glibc', 4, { names: ['redis.cache.svc.cluster.local', 'db', 'www.example.com'] }),
      ...pods('go', 1, {
        from: 60,
        names: ['redis.cache.svc.cluster.local', 'www.example.com'],
        lookups: 14,
        resolvConf: 'nameserver 198.51.100.8\n',
      }),
    ],
    (passing) => {
      if (passing.server !== '198.51.100.8') return { ...healthy(passing), behind: '10.244.9.9' };
      return passing.name.endsWith('cluster.local.') ? { rcode: 3 } : healthy(passing);
    },
  ),
  played(
    'S15 two pods use the servers of their node, which are also upstreams of the cluster DNS',
    'ND2007',
    () => [
      ...pods('glibc', 4, { names: ['redis.cache.svc.cluster.local', 'db', 'www.example.com'] }),
      ...pods('musl', 2, {
        from: 60,
        names: ['redis.cache.svc.cluster.local', 'www.example.com'],
        lookups: 14,
        resolvConf: 'nameserver 198.51.100.8\n',
      }),
      ...pods('go', 1, {
        from: 90,
        names: ['www.example.com', 'www.example.org'],
        lookups: 20,
        resolvConf: 'nameserver 198.51.100.8\n',
      }),
    ],
    (passing) => {
      if (passing.server !== '198.51.100.8') return { ...healthy(passing), behind: '10.244.1.90' };
      return passing.name.endsWith('cluster.local.') ? { rcode: 3 } : healthy(passing);
    },
  ),
  ...[0, 90].map((bytes): Story => ({
    name: `S12 a new service: busy clients ask for it while its absence is cached${bytes === 0 ? '' : ', and the capture has the beginnings of packets'}`,
    code: 'ND8003',
    packets: async (seed) => {
      const packets = await play(
        pods('glibc', 8, {
          names: ['fresh.shop.svc.cluster.local'],
          lookups: 100,
          everyMs: 110,
          resolvConf: 'nameserver 10.96.0.10\n',
        }),
        (passing) => {
          if (passing.atMs > 8000) return { addresses: ['10.96.3.7'], tookMs: 0.4 };
          return { rcode: 3, ttl: Math.ceil((8000 - passing.atMs) / 1000), tookMs: 0.3 };
        },
        { seed },
      );
      return bytes === 0 ? packets : begun(packets, bytes);
    },
  })),
  played(
    'clean: truncated answers are fetched over TCP',
    null,
    () => [...pods('glibc', 3), ...pods('go', 3, { from: 40 })],
    (passing) => dbTruncated(passing, 'A'),
  ),
  played(
    'clean: truncated answers of both families are fetched over one TCP connection, before the second UDP reply',
    null,
    () =>
      pods('glibc', 3, {
        names: Array.from({ length: 30 }, (_, i) => `db${i}`),
        lookups: 30,
        everyMs: 90,
      }),
    (passing) =>
      passing.protocol === 'udp' && /^db\d+\.shop\./.test(passing.name)
        ? { truncated: true, tookMs: passing.type === 'A' ? 0.5 : 4 }
        : { ...healthy(passing), addresses: ['10.96.3.7'] },
  ),
  {
    name: 'clean: answers are truncated, and the capture was taken with a filter for UDP',
    code: null,
    packets: async (seed) => {
      const all = await play(
        pods('glibc', 4, { names: ['db', 'redis'], lookups: 9 }),
        (passing) => dbTruncated(passing),
        { seed },
      );
      return all.filter(({ bytes }) => bytes[9] !== 6);
    },
  },
  played(
    'S10 one client does not retry over TCP, and others do',
    'ND3011',
    () => [
      ...pods('evdns', 1, { names: ['db'], lookups: 12 }),
      ...pods('glibc', 3, { from: 40, names: ['db', 'redis'], lookups: 12 }),
    ],
    (passing) => dbTruncated(passing),
  ),
  {
    name: 'clean: one socket for everything',
    code: null,
    packets: async (seed) =>
      inOrder([
        await play(everybody(6), healthy, { seed }),
        ...Array.from({ length: 60 }, (_, i) =>
          asked(i * 130, ends('10.244.1.200', 40_000), `${names[i % 2]!}.`, 100 + i),
        ),
      ]),
  },
  played(
    'a server refuses one of its clients',
    'ND4010',
    () => everybody(),
    (passing) => (passing.client === '10.244.1.2' ? { rcode: 5, tookMs: 0.4 } : healthy(passing)),
  ),
  {
    name: 'a server refuses an Alpine pod, which sends few queries compared with others',
    code: 'ND4010',
    without: ['ND2002'],
    packets: (seed) =>
      play(
        [
          ...pods('glibc', 2, { lookups: 60, everyMs: 200 }),
          ...pods('go', 1, { lookups: 60, everyMs: 200, from: 80 }),
          ...pods('musl', 1, { lookups: 6, everyMs: 2000, from: 40 }),
        ],
        (passing) =>
          passing.client === '10.244.1.40' ? { rcode: 5, tookMs: 0.4 } : healthy(passing),
        { seed },
      ),
  },
  played(
    'external names are answered late, those of the cluster at once',
    'ND4003',
    () => everybody(),
    (passing) => {
      const fate = healthy(passing);
      return passing.name.endsWith('.cluster.local.')
        ? fate
        : { ...fate, tookMs: 1200 + passing.random.integer(1200) };
    },
  ),
  played(
    'the upstream of a DNS pod is gone: its port is closed',
    'ND3005',
    () => [
      ...everybody(3),
      ...pods('glibc', 4, { resolvConf: 'nameserver 10.244.3.2\noptions ndots:1\n', from: 60 }),
      {
        ...pods('go', 1, {
          resolvConf: 'nameserver 192.0.2.53\noptions ndots:1\n',
          lookups: 8,
          names: ['www.example.com', 'api.example.org'],
        })[0]!,
        address: '10.244.3.2',
      },
    ],
    (passing) =>
      passing.server === '192.0.2.53' ? { unreachable: true, lost: true } : healthy(passing),
  ),
  {
    name: 'DNS pods answer, and the way back is not translated',
    code: 'ND3016',
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 24 }, (_, i) => {
            const port = 30_000 + i;
            const id = 200 + seed * 40 + i;
            const name = `${names[i % 2]!}.`;
            return [
              ...asked(i * 700, ends('10.244.1.7', port), name, id, { tookMs: null }),
              ...asked(i * 700 + 0.03, ends('10.244.1.7', port, '10.244.3.2'), name, id),
            ];
          }),
        ),
      ),
  },
  played(
    'clean: a custom cluster domain, whose services have one address',
    null,
    () =>
      pods('glibc', 5, {
        resolvConf:
          'nameserver 10.96.0.10\nsearch shop.svc.k8s.lan svc.k8s.lan k8s.lan\noptions ndots:5\n',
        names: ['cart.shop.svc', 'redis.data.svc', 'db.cache.svc', 'cart'],
      }),
    ({ name, type }) =>
      /^[a-z]+\.(?:shop|data|cache)\.svc\.k8s\.lan\.$/.test(name)
        ? { addresses: type === 'A' ? ['10.96.3.7'] : [], tookMs: 0.5 }
        : { rcode: 3, tookMs: 0.5 },
  ),
  {
    name: 'a program looks up one missing host after another, each by its full name',
    code: 'ND2008',
    packets: async (seed) =>
      inOrder([
        await play(everybody(4), healthy, { seed }),
        ...Array.from({ length: 600 }, (_, i) =>
          asked(
            i * 13,
            ends('10.244.1.210', 20_000 + i),
            `${((i + 7) * 7919 * seed).toString(36)}.gone.example.net.`,
            900 + i,
            { rcode: 3 },
          ),
        ),
      ]),
  },
  played(
    'two pods repeatedly look up a removed service, with ndots:1',
    'ND2008',
    () => [
      ...pods('musl', 2),
      ...pods('glibc', 2, {
        resolvConf: 'nameserver 10.96.0.10\noptions ndots:1\n',
        names: ['ledger.bank.svc.cluster.local'],
        lookups: 300,
        everyMs: 20,
        from: 60,
      }),
    ],
    healthy,
  ),
  {
    name: 'a server answers in lower case, and a resolver with random case retries at once',
    code: 'ND3019',
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 15 }, (_, i) =>
            [0, 1, 2].map((attempt) => {
              const name = `h${i + seed}.example.com.`;
              const port = 20_000 + i * 3 + attempt;
              return spelled(i * 150 + attempt * 2, port, attempt < 2 ? mixed(name, i) : name, i);
            }),
          ).flat(),
        ),
      ),
  },
  {
    name: 'a server answers in lower case, and c-ares waits for another reply',
    code: 'ND3019',
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 6 }, (_, i) =>
            [0, 1, 2].map((attempt) =>
              spelled(
                i * 900 + attempt * 2000 * (attempt + 1),
                40_000 + i,
                mixed(`www${i + seed}.example.org.`, i + seed),
                i,
              ),
            ),
          ).flat(),
        ),
      ),
  },
  {
    name: 'a server answers in lower case, and c-ares retries with the same id from another port two seconds later',
    code: 'ND3019',
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 4 }, (_, i) =>
            [0, 2001, 4650].map((afterMs, attempt) =>
              spelled(
                i * 10_000 + afterMs,
                40_000 + i * 10 + attempt,
                mixed(`www${i + seed}.example.org.`, i + seed),
                900 + i,
              ),
            ),
          ).flat(),
        ),
      ),
  },
  {
    name: 'a server answers in lower case, and a resolver with random case retries with a new id from a new port',
    code: 'ND3019',
    seen: /^12 of these queries were repeated/,
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 6 }, (_, i) =>
            [0, 2008, 4015].map((afterMs, attempt) =>
              spelled(
                i * 9000 + afterMs,
                40_000 + i * 10 + attempt,
                mixed(`www${(i % 3) + seed}.example.org.`, i + seed),
                900 + i * 10 + attempt,
              ),
            ),
          ).flat(),
        ),
      ),
  },
  {
    name: 'clean: a program spells one name with capitals every two seconds and accepts lower case',
    code: null,
    without: ['ND3019'],
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 20 }, (_, i) =>
            spelled(i * 2000, 20_000 + i, 'userApi.myShop.Example.', i),
          ),
        ),
      ),
  },
  {
    name: 'replies are too big for a link, and the server gets no ICMP error',
    code: 'ND3012',
    packets: async (seed) => {
      const others = await play(everybody(8), healthy, { seed });
      const large = Array.from({ length: 9 }, (_, i): Captured[] => {
        const way = ends('10.244.1.200', 45_000 + i);
        const query = udpPacket(way, dnsMessage('large.example.com.', 'A', { id: 70 + i }), 90 + i);
        const reply = udpPacket(back(way), Buffer.alloc(1300, 1), 300 + i);
        const error = icmpError('10.244.3.1', reply.subarray(0, 48), 3, 4, '10.96.0.10');
        return [at(i * 900, query), at(i * 900 + 1, error)];
      });
      return inOrder([others, ...large]);
    },
  },
  {
    name: 'the service’s address is no longer translated, and a proxy that queries the pods directly is not affected',
    code: 'ND3018',
    packets: (seed) =>
      play(
        [
          ...pods('glibc', 2, { lookups: 3, everyMs: 12_000 }),
          ...pods('go', 2, { lookups: 3, everyMs: 12_000, from: 40 }),
          ...pods('musl', 1, {
            lookups: 12,
            from: 90,
            resolvConf: podResolvConf.replace('10.96.0.10', '10.244.3.2'),
          }),
        ],
        (passing) => (passing.server === '10.96.0.10' ? { lost: true } : healthy(passing)),
        { seed },
      ),
  },
  played(
    'the first of two name servers is down, and clients continue with the next',
    'ND3005',
    () => pods('glibc', 4, { lookups: 5, resolvConf: `nameserver 10.96.0.9\n${podResolvConf}` }),
    (passing) => (passing.server === '10.96.0.9' ? { lost: true } : healthy(passing)),
  ),
  played(
    'a checker constantly looks up a host that does not exist, by the search path and as written',
    'ND2008',
    () => [
      ...pods('go', 3, { lookups: 60, everyMs: 80, names: ['health.localhost'] }),
      ...pods('glibc', 4, { lookups: 10, from: 60 }),
    ],
    healthy,
  ),
  {
    name: 'clean: names with capitals, answered in lower case to a client that does not mind',
    code: null,
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 40 }, (_, i) =>
            spelled(i * 400, 20_000 + i, `API${(i + seed) % 3}.Example.com.`, i),
          ),
        ),
      ),
  },
  ...[1, 5].map((ndots) =>
    played(
      `clean: Alpine asks for services without addresses in a cluster domain of its own, ndots:${ndots}`,
      null,
      () =>
        pods('musl', 4, {
          resolvConf: `nameserver 10.96.0.10\nsearch shop.svc.east.lan svc.east.lan east.lan\noptions ndots:${ndots}\n`,
          names: [
            ...['idle.shop.svc.east.lan', 'cart', 'empty.data.svc.east.lan'],
            // With ndots:1, it is tried as written.
            ndots === 1 ? 'redis.data.svc.east.lan' : 'redis.data.svc',
          ],
        }),
      ({ name, type }) => {
        if (/^(?:idle|empty)\.(?:shop|data)\.svc\.east\.lan\.$/.test(name))
          return { addresses: [], tookMs: 0.5 };
        return /^(?:cart|redis)\.(?:shop|data)\.svc\.east\.lan\.$/.test(name)
          ? { addresses: type === 'A' ? ['10.96.3.8'] : [], tookMs: 0.5 }
          : { rcode: 3, tookMs: 0.5 };
      },
    ),
  ),
  {
    name: 'a limit on packets cuts the tails of bursts',
    code: 'ND4001',
    packets: (seed) => Promise.resolve(limitedBursts(seed, 60, 30)),
  },
  {
    name: 'a limit on packets, in bursts of two pods',
    code: 'ND4001',
    packets: (seed) => Promise.resolve(limitedBursts(seed, 180, 18)),
  },
  played(
    'bursts of queries, some of which are lost at random',
    'ND3013',
    () =>
      Array.from({ length: 8 }, (_, burst) =>
        pods('go', 6, { lookups: 2, everyMs: 3, from: 1 + burst * 10 }).map((pod) => ({
          ...pod,
          lookups: pod.lookups.map(({ atMs, name }) => ({ atMs: (atMs % 37) + burst * 900, name })),
        })),
      ).flat(),
    (passing) => (some(passing, 0.12) ? { lost: true } : healthy(passing)),
  ),
  played(
    'the conntrack table occasionally has room: new sockets lose some of their queries, A and AAAA',
    'ND3003',
    () => pods('glibc', 5, { lookups: 10, everyMs: 1300 }),
    (passing) => (some(passing, 0.25) ? { lost: true } : healthy(passing)),
    ['net.netfilter.nf_conntrack_count = 65530', 'net.netfilter.nf_conntrack_max = 65536'],
  ),
];
