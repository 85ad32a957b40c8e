/**
 * Examples with only a handful of queries. They are captures from one pod that was healthy and then waits, so there is
 * little evidence.
 */
import { seededRandom } from '../../src/server/base/random.ts';
import { FLAG } from '../../src/server/wire/iana.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  fragments,
  framed,
  TCP,
  tcpPacket,
  udpPacket,
  type Captured,
} from './packets.ts';
import { healthy, play, podResolvConf, type Passing } from './story.ts';
import { asked, at, begun, ends, inOrder, pods, type Story } from './story-parts.ts';

const ONSET = 9000;

/** A healthy pod that looks up many names. */
const before = (resolver: string, seed: number): Promise<readonly Captured[]> =>
  play(pods(resolver, 1, { lookups: 40, everyMs: 200 }), healthy, { seed });

/**
 * A and AAAA queries from one port.
 * @param lost which of A and AAAA are lost; each of them is retried after five seconds, and the retry is answered if
 * requested
 */
function pair(
  atMs: number,
  port: number,
  name: string,
  lost: readonly [boolean, boolean],
  again: number | null = 5000,
): Captured[] {
  const way = ends('10.244.1.1', port);
  const first = ['A', 'AAAA'].flatMap((type, i) =>
    asked(atMs + i * 0.1, way, name, port + i, { type, ...(lost[i] === true && { tookMs: null }) }),
  );
  const repeats = ['A', 'AAAA'].flatMap((type, i) =>
    lost[i] === true && again !== null
      ? asked(atMs + again + i, way, name, port + i, { type, tookMs: 0.5 })
      : [],
  );
  return [...first, ...repeats];
}

/**
 * Half of the names have fragmented answers. From the onset, these get no reply for six seconds, and every program is
 * soon waiting for one of them.
 */
function largeOnes(seed: number): Captured[] {
  const isLarge = (i: number): boolean => (i * 7 + seed) % 9 < 4;
  const query = (atMs: number, i: number, large: boolean, isLost: boolean): Captured[] => {
    const way = ends('10.244.1.1', 31_000 + i);
    const name = large ? `large${i % 5}.example.com.` : `small${i % 5}.example.com.`;
    const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
    const sent = at(atMs, udpPacket(way, dnsMessage(name, 'A', { id: i, edns }), i + 1));
    const answer = Array.from({ length: large ? 150 : 1 }, (_, n) =>
      addressRecord(name, `192.0.2.${n}`),
    );
    const reply = dnsMessage(name, 'A', { id: i, reply: true, answer });
    if (isLost) return [sent];
    return [
      sent,
      ...(large
        ? fragments(back(way), reply, 1440, i + 500).map((bytes) => at(atMs + 1, bytes))
        : [at(atMs + 1, udpPacket(back(way), reply, i + 500))]),
    ];
  };
  return inOrder([
    ...Array.from({ length: 60 }, (_, i) => query(i * 150, i, isLarge(i), false)),
    // Sooner or later, each program queries a name with a large answer.
    ...[0, 1, 2, 3].map((i) => query(ONSET + i * 40, 100 + i, true, true)),
    ...[0, 1, 2, 3].map((i) => query(ONSET + 3000 + i * 40, 110 + i, true, true)),
    ...Array.from({ length: 40 }, (_, i) =>
      query(ONSET + 6500 + i * 150, 200 + i, isLarge(i), false),
    ),
  ]);
}

/**
 * Clients with and without EDNS query names with large and small answers. Over UDP, no answer above 512 bytes arrives.
 */
function noLongOnes(seed: number): Captured[] {
  const queries = Array.from({ length: 120 }, (_, i): Captured[] => {
    const isLong = (i * 7 + seed) % 11 < 4;
    const hasEdns = i % 3 > 0;
    const way = ends(`10.244.1.${1 + (i % 3)}`, 31_000 + i);
    const name = isLong ? `long${i % 5}.example.com.` : `short${i % 5}.example.com.`;
    const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
    const query = dnsMessage(name, 'A', { id: i, ...(hasEdns && { edns }) });
    const sent = at(i * 300, udpPacket(way, query, i + 1));
    if (isLong && hasEdns) return [sent];
    const answer = isLong ? [] : [addressRecord(name, '192.0.2.1')];
    const cut = isLong ? { flags: FLAG.QR | FLAG.TC | FLAG.RD | FLAG.RA } : {};
    const reply = dnsMessage(name, 'A', { id: i, reply: true, answer, ...cut });
    return [sent, at(i * 300 + 1, udpPacket(back(way), reply, i + 500))];
  });
  return inOrder(queries);
}

/**
 * Programs with EDNS query names with answers of three sizes. For some seconds, answers of a given size or larger are
 * lost. After that, all of them arrive again.
 */
function narrowLink(seed: number, lostFrom: number): Captured[] {
  const sizes = [100, 700, 1200];
  const queries = Array.from({ length: 160 }, (_, i): Captured[] => {
    const bytes = sizes[(i * 7 + seed) % 4] ?? 100;
    const way = ends(`10.244.1.${1 + (i % 3)}`, 31_000 + i);
    const name = `of${bytes}-${i % 5}.example.com.`;
    const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
    const sent = at(i * 200, udpPacket(way, dnsMessage(name, 'A', { id: i, edns }), i + 1));
    if (bytes >= lostFrom && i > 60 && i < 110) return [sent];
    const answer = Array.from({ length: Math.ceil((bytes - 60) / 16) }, (__, n) =>
      addressRecord(name, `192.0.2.${n}`),
    );
    const reply = dnsMessage(name, 'A', { id: i, reply: true, answer });
    return [sent, at(i * 200 + 1, udpPacket(back(way), reply, i + 500))];
  });
  return inOrder(queries);
}

/** A DNS pod queries names with answers in two fragments. From some moment on, only the first fragments arrive. */
function firstFragments(seed: number): Captured[] {
  const queries = Array.from({ length: 90 }, (_, i): Captured[] => {
    const isLarge = (i * 7 + seed) % 9 < 4;
    const way = ends('10.244.3.2', 31_000 + i, '192.0.2.53');
    const name = isLarge ? `large${i % 5}.example.com.` : `small${i % 5}.example.com.`;
    const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
    const sent = at(i * 250, udpPacket(way, dnsMessage(name, 'A', { id: i, edns }), i + 1));
    const answer = Array.from({ length: isLarge ? 150 : 1 }, (__, n) =>
      addressRecord(name, `192.0.2.${n}`),
    );
    const reply = dnsMessage(name, 'A', { id: i, reply: true, answer });
    const parts = fragments(back(way), reply, 1440, i + 500);
    const come = isLarge && i > 30 ? parts.slice(0, 1) : parts;
    return [sent, ...come.map((bytes) => at(i * 250 + 1, bytes))];
  });
  return inOrder(queries);
}

/** A client sends more and more queries but gets a fixed number of replies per second, whatever the question. */
function limited(perSecond: number, seed: number): Captured[] {
  const seconds = Array.from({ length: 20 }, (_, second) => {
    const asking = 50 + ((second * 37 + seed * 11) % 50);
    return Array.from({ length: asking }, (_, i) => {
      const nth = second * 100 + i;
      const isAnswered = i < perSecond;
      return asked(
        second * 1000 + (i * 900) / asking,
        ends('10.244.1.7', 20_000 + nth),
        `svc${(nth * 7) % 12}.shop.svc.cluster.local.`,
        nth,
        { tookMs: isAnswered ? 0.5 : null },
      );
    });
  });
  return inOrder(seconds.flat());
}

/**
 * Out of a client's 60 queries per second, 35 are let through, one at a time, on one socket. Other clients send few
 * queries, and theirs are answered.
 */
function limitedAlone(seed: number): Captured[] {
  let [tokens, lastMs] = [11, 0];
  const greedy = Array.from({ length: 1500 }, (_, i) => {
    const ms = i * 17 + ((i * 7 + seed) % 5);
    tokens = Math.min(11, tokens + ((ms - lastMs) * 35) / 1000);
    lastMs = ms;
    const isAnswered = tokens >= 1;
    if (isAnswered) tokens--;
    return asked(ms, ends('10.244.1.7', 41_929), `host${(i * 7) % 12}.example.com.`, i, {
      tookMs: isAnswered ? 0.4 : null,
    });
  });
  const others = Array.from({ length: 260 }, (_, i) =>
    asked(
      i * 98 + ((i * i * 13 + seed * 7) % 90),
      ends(`10.244.1.${20 + ((i * 5) % 9)}`, 20_000 + i),
      `svc${i % 7}.shop.svc.cluster.local.`,
      i,
      { tookMs: 0.4 },
    ),
  );
  return inOrder([...greedy, ...others]);
}

/**
 * The same under constant load, so there is no other rate to compare with. Packets may overtake others on the way to
 * the limit.
 */
function limitedEvenly(seed: number): Captured[] {
  const random = seededRandom(seed);
  const sent = Array.from({ length: 1200 }, (_, i) => i * (1000 / 55));
  const arrivals = sent.map((ms, i) => ({ i, ms: ms + random.integer(90) }));
  const passed = new Set<number>();
  let [tokens, lastMs] = [8, 0];
  for (const { i, ms } of arrivals.toSorted((one, other) => one.ms - other.ms)) {
    tokens = Math.min(8, tokens + ((ms - lastMs) * 30) / 1000);
    lastMs = ms;
    if (tokens < 1) continue;
    tokens--;
    passed.add(i);
  }
  const greedy = sent.map((ms, i) =>
    asked(ms, ends('10.244.1.7', 41_929), `host${(i * 7) % 12}.example.com.`, i, {
      tookMs: passed.has(i) ? 24 : null,
    }),
  );
  return inOrder([...greedy, ...spared(seed)]);
}

/** The same load with the same amount of random loss. */
function lostByChance(seed: number): Captured[] {
  const random = seededRandom(seed);
  const greedy = Array.from({ length: 1200 }, (_, i) =>
    asked(i * (1000 / 55), ends('10.244.1.7', 41_929), `host${(i * 7) % 12}.example.com.`, i, {
      tookMs: random.integer(100) < 55 ? 24 : null,
    }),
  );
  return inOrder([...greedy, ...spared(seed)]);
}

/** Other clients' queries during that time, all answered. */
const spared = (seed: number): Captured[][] =>
  Array.from({ length: 260 }, (_, i) =>
    asked(
      i * 84 + ((i * i * 13 + seed * 7) % 70),
      ends(`10.244.1.${20 + ((i * 5) % 4)}`, 20_000 + i),
      `svc${i % 7}.shop.svc.cluster.local.`,
      i,
      { tookMs: 0.4 },
    ),
  );

/**
 * A pod whose programs use EDNS queries names, some of which have 40 addresses. At the given times, replies longer than
 * 512 bytes are lost.
 */
const notLonger = (
  resolver: string,
  options: string,
  isDropped: (passing: Passing) => boolean,
): Promise<Captured[]> =>
  play(
    pods(resolver, 1, {
      lookups: 32,
      everyMs: 1000,
      names: ['big0', 'db', 'big1', 'backend', 'redis.cache', 'www.example.com'],
      resolvConf: `${podResolvConf}${options}`,
    }),
    (passing) => {
      const fate = healthy(passing);
      if (!/^big\d\.shop\./.test(passing.name) || passing.type !== 'A') return fate;
      return isDropped(passing)
        ? { lost: true }
        : { ...fate, addresses: Array.from({ length: 40 }, (_, i) => `192.0.2.${i}`) };
    },
  );

/**
 * Clients that send bursts at different times. Each of them is limited to 12 queries per second, with a burst of 14.
 */
function limitedEach(seed: number): Captured[] {
  return inOrder(
    [0, 1, 2, 3].flatMap((client) => {
      let [tokens, lastMs] = [14, 0];
      return Array.from({ length: 22 }, (_, wave) => wave).flatMap((wave) =>
        Array.from({ length: 6 + ((wave * 37 + client * 11 + seed * 5) % 34) }, (_, i) => {
          const ms = wave * 1100 + client * 270 + i * 9;
          tokens = Math.min(14, tokens + ((ms - lastMs) * 12) / 1000);
          lastMs = ms;
          const isAnswered = tokens >= 1;
          if (isAnswered) tokens--;
          const nth = wave * 50 + i;
          const name = `svc${(nth * 7) % 12}.shop.svc.cluster.local.`;
          return asked(ms, ends(`10.244.1.${7 + client}`, 20_000 + nth), name, nth, {
            tookMs: isAnswered ? 0.5 : null,
          });
        }),
      );
    }),
  );
}

/**
 * Pods that only use TCP, with queries for both families on one connection. Answers with several addresses do not
 * arrive, but later data does.
 */
function lostSegments(seed: number): Captured[] {
  const connections = Array.from({ length: 40 }, (_, i): Captured[] => {
    const isLarge = (i * 7 + seed) % 9 < 3;
    const way = ends(`10.244.1.${1 + (i % 3)}`, 31_000 + i);
    const home = back(way);
    const name = isLarge
      ? `big${i % 4}.shop.svc.cluster.local.`
      : `svc${i % 5}.shop.svc.cluster.local.`;
    const message = (type: string, half: number, more: object = {}): Uint8Array =>
      framed(dnsMessage(name, type, { id: 2 * i + half, ...more }));
    const [a, aaaa] = [message('A', 0), message('AAAA', 1)];
    const answer = Array.from({ length: isLarge ? 40 : 1 }, (__, n) =>
      addressRecord(name, `10.96.3.${n}`),
    );
    const first = message('A', 0, { reply: true, answer });
    const second = message('AAAA', 1, { reply: true });
    const ms = i * 500;
    const data = TCP.PSH | TCP.ACK;
    const endMs = ms + (isLarge ? 5000 : 3);
    return [
      at(ms, tcpPacket(way, 100, TCP.SYN)),
      at(ms + 0.2, tcpPacket(home, 500, TCP.SYN | TCP.ACK)),
      at(ms + 0.4, tcpPacket(way, 101, data, a)),
      at(ms + 0.5, tcpPacket(way, 101 + a.length, data, aaaa)),
      ...(isLarge ? [] : [at(ms + 1, tcpPacket(home, 501, data, first))]),
      at(ms + 1.2, tcpPacket(home, 501 + first.length, data, second)),
      at(endMs, tcpPacket(way, 101 + a.length + aaaa.length, TCP.FIN | TCP.ACK)),
      at(endMs + 0.2, tcpPacket(home, 501 + first.length + second.length, TCP.FIN | TCP.ACK)),
    ];
  });
  return inOrder(connections);
}

export const handfulStories: readonly Story[] = [
  {
    name: 'the second query of two pairs is lost, and answered on retry: all others of the pod are answered',
    code: 'ND3001',
    packets: async (seed) =>
      inOrder([
        await before('glibc', seed),
        pair(ONSET, 31_000, 'db.shop.svc.cluster.local.', [false, true]),
        pair(ONSET + 100, 31_007, 'www.example.com.', [false, true]),
      ]),
  },
  {
    name: 'three of the first hundreds of queries are lost, but one in five of the last ones',
    code: 'ND3013',
    packets: async (seed) =>
      inOrder([
        await play(pods('glibc', 1, { lookups: 400, everyMs: 20 }), healthy, { seed }),
        pair(ONSET, 31_000, 'db.shop.svc.cluster.local.', [true, false]),
        pair(ONSET + 5010, 31_020, 'backend.shop.svc.cluster.local.', [false, false]),
        pair(ONSET + 5020, 31_050, 'www.example.com.', [true, false]),
        pair(ONSET + 10_020, 31_070, 'db.shop.svc.cluster.local.', [false, false]),
        pair(ONSET + 10_030, 31_090, 'redis.cache.svc.cluster.local.', [true, false]),
      ]),
  },
  {
    name: 'a pod is cut off: it waits for one cluster name, from separate sockets, up to the end',
    code: 'ND3007',
    packets: async (seed) =>
      inOrder([
        await before('go', seed),
        ...[0, 5000].map((afterMs, i) =>
          ['A', 'AAAA'].flatMap((type, j) =>
            asked(
              ONSET + afterMs + j * 0.1,
              ends('10.244.1.1', 31_000 + 10 * i + j),
              'cdn.example.net.shop.svc.cluster.local.',
              500 + 2 * i + j,
              { type, tookMs: null },
            ),
          ),
        ),
      ]),
  },
  {
    name: 'the upstream is gone: three external names get SERVFAIL after four seconds each, cluster names are answered',
    code: 'ND4002',
    packets: async (seed) =>
      inOrder([
        await before('musl', seed),
        ...[0, 1, 2].map((i) =>
          asked(
            ONSET + i * 4500,
            ends('10.244.1.1', 31_000 + i),
            `${['www', 'api', 'cdn'][i]}.example.net.`,
            500 + i,
            { rcode: 2, tookMs: 4000 },
          ),
        ),
        ...[0, 1, 2].map((i) =>
          asked(
            ONSET + 200 + i * 4500,
            ends('10.244.1.1', 32_000 + i),
            'db.shop.svc.cluster.local.',
            600 + i,
          ),
        ),
      ]),
  },
  {
    name: 'large answers are lost for some seconds: all programs of a pod wait for some, and later ones show their size',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(largeOnes(seed)),
  },
  {
    name: 'a firewall drops UDP replies of more than 512 bytes',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(noLongOnes(seed)),
  },
  ...['go', 'c-ares', 'glibc'].flatMap((resolver): Story[] => {
    const options = resolver === 'glibc' ? 'options edns0\n' : '';
    return [
      {
        name: `nothing of more than 512 bytes ever comes over UDP, and the capture has one client: ${resolver}`,
        code: 'ND3012',
        packets: () => notLonger(resolver, options, () => true),
      },
      {
        name: `nothing of more than 512 bytes comes over UDP at times, and the capture has one client: ${resolver}`,
        code: 'ND3012',
        packets: () => notLonger(resolver, options, ({ atMs }) => atMs % 8000 > 3500),
      },
    ];
  }),
  {
    name: 'a link passes at most 600-byte packets for some seconds, and the capture has only the beginning of each packet',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(begun(narrowLink(seed, 600), 200)),
  },
  {
    name: 'a link passes at most 1100-byte packets for some seconds: those of 700 arrive',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(narrowLink(seed, 1100)),
  },
  {
    name: 'pods use only TCP, and full segments are too big for a link on the path',
    code: 'ND3012',
    seen: /over TCP .*earlier one never did/,
    without: ['ND7001'],
    packets: (seed) => Promise.resolve(lostSegments(seed)),
  },
  {
    name: 'only first fragments arrive from some moment on, and the capture has the beginning of each',
    code: 'ND3012',
    packets: (seed) => Promise.resolve(begun(firstFragments(seed), 400)),
  },
  {
    name: 'an upstream queried from new sockets is silent for seconds, while clients continue with old ones',
    code: 'ND3007',
    without: ['ND3003'],
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 300 }, (_, i) =>
            asked(
              i * 70,
              ends('10.244.3.2', 20_000 + i, '10.0.0.53'),
              `www${(i + seed) % 9}.example.com.`,
              i,
              {
                tookMs: i > 140 && i < 200 ? null : 1,
              },
            ),
          ),
          ...Array.from({ length: 200 }, (_, i) =>
            asked(
              i * 100,
              ends(`10.244.1.${i % 3}`, 40_000),
              'db.shop.svc.cluster.local.',
              1000 + i,
            ),
          ),
        ]),
      ),
  },
  {
    name: 'a server answers eighteen queries a second for each client',
    code: 'ND4001',
    without: ['ND3002', 'ND3008'],
    packets: (seed) => Promise.resolve(limited(18, seed)),
  },
  {
    name: 'each of four clients is limited to twelve queries a second and fourteen at once, and sends bursts at different times',
    code: 'ND4001',
    packets: (seed) => Promise.resolve(limitedEach(seed)),
  },
  {
    name: 'one client gets 35 replies a second for any question, and others with few queries lose nothing',
    code: 'ND4001',
    without: ['ND3013'],
    packets: (seed) => Promise.resolve(limitedAlone(seed)),
  },
  {
    name: 'one client always gets 30 replies a second for 55 queries, and others with few queries lose nothing',
    code: 'ND4001',
    without: ['ND3013'],
    packets: (seed) => Promise.resolve(limitedEvenly(seed)),
  },
  {
    name: 'one client always gets replies to a random 55 % of 55 queries a second, and others lose nothing',
    code: 'ND3013',
    without: ['ND4001'],
    packets: (seed) => Promise.resolve(lostByChance(seed)),
  },
];
