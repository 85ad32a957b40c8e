/** Examples whose fault affects part of a capture: a few seconds, one server, one client, or replies of one size. */
import { parseAddress } from '../../src/server/base/ip.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  fragments,
  icmpError,
  TCP,
  tcpPacket,
  udpPacket,
  type Captured,
} from './packets.ts';
import {
  healthy,
  play,
  podResolvConf,
  type Fate,
  type Passing,
  type StoryClient,
} from './story.ts';
import {
  asked,
  at,
  byAge,
  corpResolvConf,
  dbTruncated,
  ends,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';

/** Pods of all kinds for half a minute. */
const forLong = (resolvConf?: string): StoryClient[] => {
  const more = { lookups: 26, everyMs: 1100, ...(resolvConf !== undefined && { resolvConf }) };
  return [
    ...pods('glibc', 3, more),
    ...pods('musl', 2, { ...more, from: 40 }),
    ...pods('go', 2, { ...more, from: 80 }),
  ];
};

/** A fault during some seconds, among many healthy ones. */
const within =
  (fromMs: number, toMs: number, fate: (passing: Passing) => Fate) =>
  (passing: Passing): Fate =>
    passing.atMs >= fromMs && passing.atMs < toMs ? fate(passing) : healthy(passing);

/** Each server uses its own ports, because the same port would mean the same packet after translation. */
const port = (server: string): number => 1000 * (parseAddress(server)!.at(-2)! % 20);

/** One client's exchanges with one server, at a fixed interval in milliseconds. */
function series(
  client: string,
  server: string,
  count: number,
  everyMs: number,
  tookMs: (i: number) => number | null,
): Captured[][] {
  return Array.from({ length: count }, (_, i) => {
    const name = ['db.shop.svc.cluster.local.', 'redis.cache.svc.cluster.local.'][i % 2]!;
    return asked(
      i * everyMs,
      ends(client, 21_000 + i + port(server), server),
      name,
      400 + i + port(server),
      {
        tookMs: tookMs(i),
      },
    );
  });
}

/** Three DNS pods behind a node cache, and the way one of them behaves. */
const behindCache = (name: string, code: string, sick: (i: number) => number | null): Story => ({
  name,
  code,
  packets: async (seed) => {
    const resolvConf = podResolvConf.replace('10.96.0.10', '169.254.20.10');
    const clients = await play(pods('glibc', 4, { lookups: 20, resolvConf }), healthy, { seed });
    const asks = (pod: string, count: number, tookMs: (i: number) => number | null): Captured[][] =>
      series('169.254.1.1', pod, count, 14_000 / count, tookMs);
    return inOrder([
      clients,
      ...asks('10.244.3.2', 80, () => 0.7),
      ...asks('10.244.4.2', 70, () => 0.7),
      ...asks('10.244.5.2', 24, sick),
    ]);
  },
});

/** A query and the router's reply, which says that no host on its link has the address. */
function undeliverable(atMs: number, client: string, port: number, server: string): Captured[] {
  const isSix = server.includes(':');
  const query = udpPacket(ends(client, port, server), dnsMessage('db.', 'A', { id: port }), 5);
  const [type, code] = isSix ? [1, 3] : [3, 1];
  const router = isSix ? 'fd00:77::1' : '10.77.0.1';
  return [at(atMs, query), at(atMs + 3, icmpError(router, query, type, code, client))];
}

/**
 * Two servers, the second of which has none of the names. Each name is queried six times, each time at a randomly
 * chosen server.
 */
function seldomDenied(seed: number, servers: readonly string[] = []): Captured[] {
  const random = seededRandom(seed);
  return inOrder(
    Array.from({ length: 150 }, (_, i) => {
      const isSecond = random.integer(2) === 1;
      const name = `svc${(i * 7) % 25}.shop.svc.cluster.local.`;
      const way = ends('10.244.1.7', 30_000 + i, servers[isSecond ? 1 : 0]);
      const more = isSecond ? { rcode: 3 } : {};
      return ['A', 'AAAA'].flatMap((type, j) =>
        asked(i * 110 + j * 0.1, way, name, 700 + 2 * i + j, { ...more, type }),
      );
    }),
  );
}

/** A host that disappears from its link after eight seconds. */
const goneHost = (server: string, client: string): Story => ({
  name: `the address of the name server has disappeared from the link, ${server}`,
  code: 'ND3015',
  packets: () =>
    Promise.resolve(
      inOrder([
        ...series(client, server, 60, 130, () => 0.6),
        ...Array.from({ length: 16 }, (_, i) =>
          undeliverable(8000 + i * 900, client, 30_000 + i, server),
        ),
      ]),
    ),
});

/**
 * Large answers leave the server in fragments. On the way to the client (interface 2), only the small fragments are
 * seen.
 */
function fragmentedOnTheWay(seed: number): Captured[] {
  const seen = (port: number, packets: readonly Captured[]): Captured[] =>
    packets.map((packet) => ({ ...packet, port }));
  return inOrder(
    Array.from({ length: 60 }, (_, i) => {
      const isLarge = i % 4 === 0;
      const way = ends('10.244.1.7', 30_000 + i, '10.244.3.2');
      const name = isLarge ? `large${i % 3}.example.com.` : `small${i % 5}.example.com.`;
      const id = 300 + i + seed;
      const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
      const query = udpPacket(way, dnsMessage(name, 'A', { id, edns }), id);
      const answer = Array.from({ length: isLarge ? 150 : 1 }, (_, n) =>
        addressRecord(name, `192.0.2.${n}`),
      );
      const reply = dnsMessage(name, 'A', { id, reply: true, answer });
      const replies = isLarge
        ? fragments(back(way), reply, 1440, id + 500).map((bytes) => at(i * 400 + 1, bytes))
        : [at(i * 400 + 1, udpPacket(back(way), reply, id + 500))];
      const queries = [at(i * 400, query)];
      return [
        ...seen(2, queries),
        ...seen(
          4,
          queries.map((each) => ({ ...each, timeMs: each.timeMs + 0.02 })),
        ),
        ...seen(4, replies),
        ...(isLarge
          ? []
          : seen(
              2,
              replies.map((each) => ({ ...each, timeMs: each.timeMs + 0.02 })),
            )),
      ];
    }),
  );
}

export const partStories: readonly Story[] = [
  {
    name: 'S16 a zone is empty for some seconds, and then restored',
    code: 'ND4006',
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 360 }, (_, i) =>
            asked(
              i * 80,
              ends(`10.244.1.${(i % 9) + 1}`, 30_000 + i),
              `svc${(i + seed) % 12}.example.com.`,
              700 + i,
              i < 130 || i > 250 ? { tookMs: 2 } : { rcode: 3, tookMs: 2 },
            ),
          ),
        ),
      ),
  },
  {
    name: 'one of two replicas behind one address lacks names, each queried so rarely that some seem to disappear for good',
    code: 'ND8001',
    without: ['ND4006'],
    packets: (seed) => Promise.resolve(seldomDenied(seed)),
  },
  {
    name: 'one of two DNS pods, seen at the switch, lacks names that are rarely queried',
    code: 'ND8001',
    without: ['ND4006'],
    packets: (seed) => Promise.resolve(seldomDenied(seed, ['10.244.3.2', '10.244.4.2'])),
  },
  {
    name: 'a new name that two DNS pods behind one address cache as missing for different times',
    code: 'ND8003',
    without: ['ND8001', 'ND8004'],
    packets: (seed) =>
      play(
        pods('glibc', 6, {
          names: ['fresh.shop.svc.cluster.local'],
          lookups: 100,
          everyMs: 130,
          resolvConf: 'nameserver 10.96.0.10\n',
        }),
        ({ atMs, port: from, type }) => {
          const behind = from % 2 === 0 ? '10.244.3.2' : '10.244.4.2';
          const untilMs = from % 2 === 0 ? 8000 : 8700;
          return atMs > untilMs
            ? { addresses: type === 'A' ? ['10.96.3.7'] : [], tookMs: 0.4, behind }
            : { rcode: 3, ttl: Math.ceil((untilMs - atMs) / 1000), tookMs: 0.3, behind };
        },
        { seed },
      ),
  },
  goneHost('10.77.0.53', '10.244.1.7'),
  goneHost('fd00:77::53', 'fd00:42::7'),
  {
    name: 'fragments of large answers are seen at the server, and not where the queries came from',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(fragmentedOnTheWay(seed)),
  },
  played(
    'S6 the CPU of the servers is throttled for ten seconds: a hundred replies are late, and a few are lost',
    'ND7001',
    () => forLong(),
    within(9000, 19_000, (passing) =>
      some(passing, 0.08)
        ? { lost: true }
        : { ...healthy(passing), tookMs: 50 + passing.random.integer(120) },
    ),
  ),
  behindCache(
    'one of three DNS pods behind the cache of the node is dead, and the cache keeps answering',
    'ND3008',
    () => null,
  ),
  behindCache(
    'one of the DNS pods behind the cache of the node answers nothing for some seconds',
    'ND3007',
    (i) => (i >= 8 && i < 16 ? null : 0.7),
  ),
  {
    name: 'DNS over TCP is closed between the DNS pods and their upstream, and open everywhere else',
    code: 'ND3011',
    packets: async (seed) => {
      const clients = await play(
        pods('glibc', 6, { names: ['db', 'www.example.com'], lookups: 25 }),
        (passing) => dbTruncated(passing),
        { seed },
      );
      const upstream = series('10.244.3.2', '192.0.2.53', 60, 220, () => 4);
      const tried = Array.from({ length: 3 }, (_, i): Captured[] => {
        const syn = tcpPacket(ends('10.244.3.2', 39_000 + i, '192.0.2.53'), 100, TCP.SYN);
        return [0, 1000, 3000].map((afterMs) => at(2000 + i * 2000 + afterMs, syn));
      });
      return inOrder([clients, ...upstream, ...tried]);
    },
  },
  played(
    'DNS over TCP is closed for the first seconds of a capture, and open afterwards',
    'ND3011',
    () => pods('go', 4, { names: ['db', 'www.example.com'], lookups: 30, everyMs: 800 }),
    (passing) => {
      if (passing.protocol === 'tcp') return passing.atMs < 9000 ? { tcp: 'dropped' } : {};
      return dbTruncated(passing, 'A');
    },
  ),
  played(
    'S17 the DNS pods have no connection to the API server for three of thirty seconds',
    'ND5001',
    () => forLong(),
    within(14_000, 17_000, (passing) =>
      passing.name.endsWith('.cluster.local.') ? { rcode: 2, tookMs: 0.4 } : healthy(passing),
    ),
  ),
  played(
    'external names are answered late for five of thirty seconds',
    'ND4003',
    () =>
      pods('go', 6, {
        lookups: 40,
        everyMs: 750,
        resolvConf: 'nameserver 10.96.0.10\noptions ndots:1\n',
        names: ['www.example.com', 'api.example.org', 'mail.example.com'],
      }),
    within(12_000, 17_000, (passing) => ({
      ...healthy(passing),
      tookMs: 900 + passing.random.integer(700),
    })),
  ),
  played(
    'S8 a search domain is no longer answered, seen from one pod with few queries',
    'ND2003',
    () => pods('go', 1, { lookups: 24, everyMs: 1100, resolvConf: corpResolvConf }),
    within(14_000, 60_000, (passing) =>
      passing.name.endsWith('.corp.example.') ? { lost: true } : healthy(passing),
    ),
  ),
  played(
    'S18 AAAA is answered NXDOMAIN from some moment on',
    'ND8002',
    () => forLong(),
    within(16_000, 60_000, (passing) =>
      passing.type === 'AAAA' && (healthy(passing).rcode ?? 0) === 0
        ? { rcode: 3, tookMs: 0.3 }
        : healthy(passing),
    ),
  ),
  {
    name: 'S20 the conntrack table is full for some seconds, and one packet of five gets in, seen from one pod',
    code: 'ND3003',
    packets: async (seed) => {
      const fresh = await play(
        pods('glibc', 1, { lookups: 40, everyMs: 350 }),
        byAge((passing) => passing.atMs > 7000 && passing.atMs < 12_000 && some(passing, 0.8)),
        { seed },
      );
      const kept = Array.from({ length: 700 }, (_, i) =>
        asked(i * 30, ends('10.244.1.1', 40_000), `${names[i % 2]!}.`, 100 + i),
      );
      return inOrder([fresh, ...kept]);
    },
  },
  {
    name: 'S27 one of two upstream servers has lost a zone that it had',
    code: 'ND4005',
    packets: async (seed) => {
      const clients = await play(pods('glibc', 3), healthy, { seed });
      const upstream = Array.from({ length: 90 }, (_, i) => {
        const server = i % 2 === 0 ? '192.0.2.53' : '192.0.2.77';
        const way = ends('10.244.3.2', 40_000 + i, server);
        const isGone = i % 2 === 1 && i > 30;
        const name = `${['wiki', 'git'][(i >> 1) % 2]!}.corp.example.`;
        return asked(i * 150, way, name, 60 + i, isGone ? { rcode: 3 } : {});
      });
      return inOrder([clients, ...upstream]);
    },
  },
  {
    name: 'S27 one of three upstream servers denies a zone: A and AAAA of its names disagree for the same reason',
    code: 'ND4005',
    without: ['ND8002', 'ND8004', 'ND4006'],
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 120 }, (_, i) => {
            const turn = (i * 7 + (i >> 2) + seed) % 3;
            const isOnce = i % 4 === 0;
            const name = `${isOnce ? `u${i}` : `s${i % 5}`}.foo.example.`;
            const both = (
              atMs: number,
              way: ReturnType<typeof ends>,
              ofA: boolean,
              ofAaaa: boolean,
            ): Captured[] =>
              ['A', 'AAAA'].flatMap((type, half) =>
                asked(atMs + half * 0.05, way, name, 2 * i + half, {
                  ...{ type, tookMs: 2 },
                  rcode: [ofA, ofAaaa][half]! ? 0 : 3,
                }),
              );
            // Each query in a pair is forwarded separately.
            const [a, aaaa] = [turn !== 2, (turn + 1 + (i % 2)) % 3 !== 2];
            return [
              ...both(i * 200, ends(`10.244.1.${1 + (i % 4)}`, 30_000 + i), a, aaaa),
              ...[a, aaaa].flatMap((isThere, half) =>
                asked(
                  i * 200 + 0.5 + half * 0.05,
                  ends(
                    '10.244.3.2',
                    40_000 + 2 * i + half,
                    isThere ? `192.0.2.${51 + (i % 2)}` : '192.0.2.77',
                  ),
                  name,
                  700 + 2 * i + half,
                  {
                    ...{ type: ['A', 'AAAA'][half]!, tookMs: 1 },
                    rcode: isThere ? 0 : 3,
                  },
                ),
              ),
            ];
          }),
        ),
      ),
  },
  {
    name: 'queries with EDNS are dropped, those without are answered',
    code: 'ND4009',
    packets: async (seed) => {
      const clients = await play(pods('glibc', 5, { lookups: 12 }), healthy, { seed });
      const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
      const fallback = Array.from({ length: 14 }, (_, i): Captured[] => {
        const way = ends('10.244.1.77', 33_000 + i);
        const name = `${names[i % 2]!}.`;
        const query = udpPacket(way, dnsMessage(name, 'A', { id: 900 + i, edns }), 900 + i);
        const plain = asked(i * 500 + 400, ends('10.244.1.77', 34_000 + i), name, 950 + i);
        return [at(i * 500, query), ...plain];
      });
      return inOrder([clients, ...fallback]);
    },
  },
  {
    name: 'one of the DNS pods is gone with its node: a router reports that for the sockets translated to it',
    code: 'ND3008',
    packets: async (seed) => {
      const clients = await play(pods('glibc', 5, { lookups: 16 }), healthy, { seed });
      const astray = Array.from({ length: 5 }, (_, i) =>
        undeliverable(5000 + i * 900, '10.244.1.7', 30_000 + i, '10.96.0.10'),
      );
      return inOrder([clients, ...astray]);
    },
  },
  played(
    'upstream is slow, seen where only it is queried',
    'ND4003',
    () =>
      pods('go', 16, {
        lookups: 22,
        everyMs: 900,
        resolvConf: 'nameserver 192.0.2.53\noptions ndots:1\n',
        names: ['www.example.com', 'api.example.org'],
      }),
    within(6000, 60_000, (passing) => ({
      ...healthy(passing),
      tookMs: 700 + passing.random.integer(450),
    })),
  ),
  played(
    'one of three DNS pods lacks the services of a namespace, for a while, and has had them before',
    'ND8001',
    () => pods('glibc', 6, { names: ['db', 'queue', 'mail-out'], lookups: 24, everyMs: 500 }),
    (passing) => {
      const behind = `10.244.${3 + passing.random.integer(3)}.2`;
      const isGone = behind === '10.244.3.2' && passing.atMs > 4000 && passing.atMs < 9500;
      return isGone && passing.name.endsWith('.shop.svc.cluster.local.')
        ? { rcode: 3, tookMs: 0.4, behind }
        : { ...healthy(passing), behind };
    },
  ),
  {
    name: 'clean: a DNS pod is added, and the replies to two of thousands of queries bypass the translation',
    code: null,
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 3000 }, (_, i) =>
            asked(i * 9, ends(`10.244.1.${i % 7}`, 20_000 + i), `${names[i % 2]!}.`, 100 + i),
          ),
          ...Array.from({ length: 2 }, (_, i) => {
            const way = ends('10.244.1.9', 41_000 + i + seed);
            const query = udpPacket(way, dnsMessage('db.', 'A', { id: 77 + i }), 77 + i);
            const reply = dnsMessage('db.', 'A', { id: 77 + i, reply: true });
            const home = { ...back(way), from: '10.244.7.2' };
            return [at(9000 + i, query), at(9001 + i, udpPacket(home, reply, 79 + i))];
          }),
        ]),
      ),
  },
  {
    name: 'a server hangs for eight seconds, and then answers all waiting queries',
    code: 'ND3007',
    packets: (seed) => {
      const goesOn = 18_000;
      return play(
        forLong('nameserver 10.96.0.10\noptions ndots:1 timeout:10\n'),
        within(10_000, goesOn, (passing) => ({
          ...healthy(passing),
          tookMs: goesOn - passing.atMs + passing.random.integer(40),
        })),
        { seed },
      );
    },
  },
  {
    name: 'AAAA is dropped upstream of the DNS pods, which answer SERVFAIL',
    code: 'ND3009',
    seen: /^\d+ AAAA queries to 192\.0\.2\.53 for api\.example\.org\. got no reply/,
    packets: async (seed) => {
      const isHit = ({ name, type }: Passing): boolean =>
        type === 'AAAA' && name === 'api.example.org.';
      const clients = await play(
        pods('go', 4, { lookups: 6, everyMs: 6000 }),
        (passing) => (isHit(passing) ? { rcode: 2, tookMs: 4000 } : healthy(passing)),
        { seed },
      );
      const upstream = Array.from({ length: 16 }, (_, i) =>
        asked(i * 1500, ends('10.244.3.2', 40_000 + i, '192.0.2.53'), 'api.example.org.', 80 + i, {
          type: i % 2 === 0 ? 'AAAA' : 'A',
          tookMs: i % 2 === 0 ? null : 5,
        }),
      );
      return inOrder([clients, ...upstream]);
    },
  },
  {
    name: 'S20 no new socket of a pod gets in for five seconds, and its old one still works',
    code: 'ND3003',
    packets: async (seed) => {
      const fresh = await play(
        [
          ...pods('glibc', 1, { lookups: 30, everyMs: 300 }),
          ...pods('glibc', 1, { lookups: 6, everyMs: 40 }).map((pod) => ({
            ...pod,
            lookups: pod.lookups.map(({ atMs, name }) => ({ atMs: atMs + 12_000, name })),
          })),
        ],
        within(12_000, 60_000, () => ({ lost: true })),
        { seed },
      );
      const kept = Array.from({ length: 500 }, (_, i) =>
        asked(i * 50, ends('10.244.1.1', 40_000), `${names[i % 2]!}.`, 100 + i),
      );
      return inOrder([fresh, ...kept]);
    },
  },
  {
    name: 'clean: one packet of a query is lost, and its repeat is answered',
    code: null,
    packets: (seed) =>
      play(
        forLong(),
        ({ ...passing }) =>
          passing.attempt === 1 && passing.atMs > 9000 && passing.atMs < 9030
            ? { lost: true }
            : healthy(passing),
        { seed },
      ),
  },
  {
    ...played(
      'a policy cuts three pods off for a while: the client decides, and not its socket, and the sockets of others still work',
      'ND3004',
      () => [
        ...forLong(),
        ...pods('glibc', 3, { lookups: 26, everyMs: 1100, from: 120 }),
        ...pods('c-ares', 2, { lookups: 120, everyMs: 220, from: 160 }),
      ],
      within(8000, 20_000, (passing) =>
        /\.12\d$/.test(passing.client) ? { lost: true } : healthy(passing),
      ),
    ),
    without: ['ND3003'],
  },
];
