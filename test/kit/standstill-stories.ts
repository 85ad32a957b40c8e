/**
 * Examples of servers that hang for seconds and then answer all waiting queries, and of links that are down for about
 * as long.
 */
import { icmpError, type Captured } from './packets.ts';
import { healthy, play, type Fate, type Passing } from './story.ts';
import { asked, at, ends, inOrder, names, played, pods, type Story } from './story-parts.ts';

/** A pod that sends many queries from a few programs, all of which are then waiting. */
const busy = (count = 1): ReturnType<typeof pods> =>
  pods('go', count, { lookups: 100, everyMs: 200, names: names.slice(0, 5) });

/** No replies arrive during these times, and at the end all of them arrive at once. */
const still =
  (
    times: readonly (readonly [fromMs: number, toMs: number])[],
    isHit: (passing: Passing) => boolean = () => true,
  ) =>
  (passing: Passing): Fate => {
    const time = times.find(([from, to]) => passing.atMs >= from && passing.atMs < to);
    if (time === undefined || !isHit(passing)) return healthy(passing);
    const waitedMs = time[1] - passing.atMs + passing.random.integer(3);
    return { ...healthy(passing), tookMs: Math.max(waitedMs, 0.3) };
  };

/** Pods whose programs wait for one query before sending the next. */
function patient(seed: number, fate: (passing: Passing) => Fate): Promise<Captured[]> {
  return play(busy(), fate, { seed });
}

/** Six lookups sent within half a second. */
function few(seed: number, toMs: number, tookMs: (i: number) => number): Captured[][] {
  return Array.from({ length: 6 }, (_, i) => {
    const name = `${['db.shop', 'redis.cache'][(i + seed) % 2]}.svc.cluster.local.`;
    return ['A', 'AAAA'].flatMap((type, j) => {
      const atMs = toMs - 3000 + i * 80 + j * 0.1;
      return asked(atMs, ends('10.244.1.9', 41_000 + 2 * i + j), name, 700 + 2 * i + j, {
        type,
        tookMs: tookMs(i),
      });
    });
  });
}

/** A pod that is busy until one moment, and again from a later one. */
const around = (seed: number, fromMs: number, toMs: number): Captured[][] =>
  Array.from({ length: 150 }, (_, i) => i * 100)
    .filter((ms) => ms < fromMs || ms > toMs)
    .map((ms, i) =>
      asked(
        ms,
        ends('10.244.1.9', 30_000 + i),
        `${['db.shop', 'www.example', 'redis.cache'][(i + seed) % 3]}.svc.cluster.local.`,
        300 + i,
        { tookMs: 0.4 },
      ),
    );

const POD = '10.244.3.2';
const UPSTREAM = '192.0.2.53';

/** The names are new, so caches do not help. */
const fresh = (i: number): string => `h${i % 40}.example.com.`;

/** A DNS pod's queries to its hanging upstream, and its clients' queries during that time. */
function upstreamStill(seed: number, fromMs: number, toMs: number): Captured[] {
  const isIn = (ms: number): boolean => ms >= fromMs && ms < toMs;
  return inOrder(
    Array.from({ length: 160 }, (_, i): Captured[][] => {
      const ms = i * 90;
      const waits = isIn(ms) ? toMs - ms + (i % 4) : 5;
      const client = `10.244.1.${10 + ((i + seed) % 4)}`;
      // Some are abandoned and some fail. Failures are cached for five seconds.
      const given = isIn(ms) && i % 3 === 0;
      const failed = isIn(ms) && i % 3 === 1;
      return [
        asked(ms, ends(client, 21_000 + i, POD), fresh(i), 300 + i, {
          tookMs: given ? null : failed ? 2000 : waits + 1,
          rcode: failed ? 2 : 0,
        }),
        asked(ms + 0.5, ends(POD, 31_000 + i, UPSTREAM), fresh(i), 900 + i, { tookMs: waits }),
        ...(failed
          ? [4000, 4300, 4600].map((later, n) =>
              asked(
                ms + later,
                ends(client, 25_000 + 10 * i + n, POD),
                fresh(i),
                4000 + 10 * i + n,
                { tookMs: 0.3, rcode: 2 },
              ),
            )
          : []),
        asked(
          ms + 20,
          ends(client, 23_000 + i, POD),
          `${['db.shop', 'redis.cache'][i % 2]}.svc.cluster.local.`,
          8000 + i,
          { tookMs: 0.4 },
        ),
      ];
    }).flat(),
  );
}

/** An upstream that is always slow, so some of its replies coincide by chance. */
const slowUpstream = (seed: number): Captured[] =>
  inOrder(
    Array.from({ length: 120 }, (_, i) => {
      const ms = Math.floor(i / 6) * 1500 + (i % 6) * 60;
      const tookMs = 1900 - (i % 3) * 60 - ((i * 7 + seed) % 2) * 600;
      return [
        asked(ms, ends(`10.244.1.${10 + (i % 4)}`, 21_000 + i, POD), fresh(i), 300 + i, {
          tookMs: tookMs + 1,
        }),
        asked(ms + 0.5, ends(POD, 31_000 + i, UPSTREAM), fresh(i), 900 + i, { tookMs }),
        asked(
          ms + 20,
          ends(`10.244.1.${10 + (i % 4)}`, 23_000 + i, POD),
          'db.shop.svc.cluster.local.',
          8000 + i,
          { tookMs: 0.4 },
        ),
      ];
    }).flat(),
  );

/**
 * At a DNS pod that stops seven times for five seconds. Two musl pods repeat their queries from the same sockets, and
 * close these at the first reply.
 */
const stoppedAgain = (): Captured[] =>
  inOrder(
    Array.from({ length: 7 }, (_, nth) => nth * 8000).flatMap((startMs, nth) => {
      const stopMs = startMs + 2600;
      const endMs = stopMs + 5200;
      return [7, 9].flatMap((pod) => {
        const client = `10.244.1.${pod}`;
        // The queries of one pod were repeated shortly before the end.
        const backMs = pod === 7 ? endMs + 1 : endMs;
        const port = 20_000 + pod * 1000 + nth * 40;
        const well = Array.from({ length: 8 }, (_, i) =>
          asked(
            startMs + pod * 11 + i * 300,
            ends(client, port + i, POD),
            'db.shop.svc.cluster.local.',
            port + i,
            {
              tookMs: 0.4,
            },
          ),
        );
        const waiting = ['A', 'AAAA'].flatMap((type, i) => {
          const [id, sentMs] = [port + 20 + i, stopMs + (pod === 7 ? 60 : 2200) + i * 0.02];
          const name = `${['cache', 'redis.cache'][nth % 2]}.svc.cluster.local.`;
          const way = ends(client, port + 20, POD);
          const first = asked(sentMs, way, name, id, {
            type,
            tookMs: backMs + i * 0.02 - sentMs,
          });
          const again = asked(sentMs + 2500, way, name, id, {
            type,
            tookMs: backMs + 0.1 + i * 0.02 - sentMs - 2500,
          });
          const closed = icmpError(client, again[1]!.bytes, 3, 3, POD);
          return [first, again, [at(backMs + 0.2 + i * 0.02, closed)]];
        });
        const single = asked(
          stopMs + 400 + pod,
          ends(client, port + 30, POD),
          'db.shop.svc.cluster.local.',
          port + 30,
          {
            tookMs: backMs + 0.05 - stopMs - 400 - pod,
          },
        );
        return [...well, ...waiting, single];
      });
    }),
  );

export const standstillStories: readonly Story[] = [
  {
    name: 'a DNS pod stops seven times, and its clients repeat their queries and close their sockets',
    code: 'ND3007',
    without: ['ND2012', 'ND3013', 'ND4003'],
    seen: /^10\.244\.3\.2 sent no replies for a while 7 times/,
    packets: () => Promise.resolve(stoppedAgain()),
  },
  {
    name: 'the server hangs for three seconds: six lookups of one pod were sent in the first half second, and all wait',
    code: 'ND3007',
    without: ['ND4003'],
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...around(seed, 6000, 9100),
          ...few(seed, 9100, (i) => 3000 - i * 80 + (i % 3) * 0.5),
        ]),
      ),
  },
  {
    name: 'the only server hangs four times for two or three seconds',
    code: 'ND3007',
    without: ['ND4003', 'ND7001'],
    seen: /^10\.96\.0\.10 sent no replies for a while 4 times/,
    packets: (seed) =>
      patient(
        seed,
        still([
          [3000, 5300],
          [8000, 10_700],
          [13_000, 16_000],
          [18_000, 20_100],
        ]),
      ),
  },
  {
    name: 'the only server repeatedly hangs for a little more than a second',
    code: 'ND3007',
    without: ['ND4003', 'ND7001'],
    packets: (seed) =>
      play(
        busy(8),
        still([3, 7, 11, 15].map((second) => [second * 1000, second * 1000 + 1350] as const)),
        { seed },
      ),
  },
  {
    name: 'one of two servers behind an address hangs: sockets that are translated to it wait, all others are answered',
    code: 'ND3007',
    packets: (seed) =>
      play(
        busy(3),
        still([[8000, 11_300]], ({ port }) => port % 2 === 0),
        { seed },
      ),
  },
  {
    name: 'the upstream hangs for four seconds, and the DNS pod waits for it: late replies, lost ones, failures that are cached',
    code: 'ND3007',
    without: ['ND3010', 'ND3013', 'ND4002', 'ND4003', 'ND4007', 'ND7001'],
    seen: /^192\.0\.2\.53 sent no replies/,
    packets: (seed) => Promise.resolve(upstreamStill(seed, 6000, 10_000)),
  },
  {
    name: 'the upstream is always slow, and three of its replies occasionally coincide',
    code: 'ND4003',
    without: ['ND3007'],
    packets: (seed) => Promise.resolve(slowUpstream(seed)),
  },
  played(
    'clean: a name occasionally takes three seconds, and its pod looks up others during that time',
    null,
    () => busy(),
    (passing) =>
      passing.name === 'www.example.com.' && passing.random.integer(8) === 0
        ? { addresses: ['192.0.2.10'], tookMs: 2500 + passing.random.integer(900) }
        : healthy(passing),
  ),
  {
    name: 'the link is down three times for two or three seconds',
    code: 'ND3007',
    seen: /3 times/,
    packets: (seed) =>
      patient(seed, (passing) =>
        [3000, 9000, 15_000].some((ms) => passing.atMs >= ms && passing.atMs < ms + 2400)
          ? { lost: true }
          : healthy(passing),
      ),
  },
];
