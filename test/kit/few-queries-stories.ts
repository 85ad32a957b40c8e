/**
 * Examples whose fault only shows in a few queries, because waiting programs send little. The cause follows from a
 * property that these few share, or from times that do not occur elsewhere.
 */
import type { Captured } from './packets.ts';
import { healthy, play, type Fate, type Passing, type StoryClient } from './story.ts';
import {
  asked,
  begun,
  byAge,
  corpResolvConf,
  ends,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';

/** Milliseconds until the fault in these examples starts. */
const ONSET = 9000;

/** Two pods, each of which looks up one name at a time. */
const few = (resolver = 'glibc', resolvConf?: string): StoryClient[] =>
  pods(resolver, 2, { lookups: 30, everyMs: 700, ...(resolvConf !== undefined && { resolvConf }) });

const later =
  (fate: (passing: Passing) => Fate) =>
  (passing: Passing): Fate =>
    passing.atMs < ONSET ? healthy(passing) : fate(passing);

/** A process that gets a tenth of every second. Packets that arrive outside it wait until the second is over. */
function throttled(passing: Passing): Fate {
  const fate = healthy(passing);
  const into = passing.atMs % 920;
  return { ...fate, tookMs: (fate.tookMs ?? 0) + (into < 90 ? 0 : 920 - into) };
}

/** Queries and replies at a fixed interval in milliseconds, each on its own socket. */
function series(
  client: string,
  server: string,
  count: number,
  everyMs: number,
  of: (i: number) => { readonly name: string; readonly tookMs: number | null },
): Captured[][] {
  return Array.from({ length: count }, (_, i) => {
    const { name, tookMs } = of(i);
    return asked(i * everyMs, ends(client, 31_000 + i, server), name, 300 + i, { tookMs });
  });
}

/** Both queries that a program sends for a name from the same port, neither of which gets a reply. */
const waits = (ms: number, program: number): Captured[] =>
  ['A', 'AAAA'].flatMap((type, i) =>
    asked(
      ms + program,
      ends('10.244.1.7', 52_000 + program, '169.254.20.10'),
      `${names[program]!}.`,
      900 + 2 * program + i,
      { type, tookMs: null },
    ),
  );

/** A DNS pod's queries to its upstream. Every third name gets no reply. */
const someNames = (isDead: (i: number) => boolean) => (i: number) => ({
  name: i % 3 === 0 ? `${['hooks', 'registry'][i % 2]!}.dead.example.` : `${names[i % 7]!}.`,
  tookMs: i % 3 === 0 && isDead(i) ? null : 4,
});

/** Names that a DNS pod forwards to its upstream. */
const isOutside = ({ name }: Passing): boolean => /(?:^|\.)example\.(?:com|org)\.$/.test(name);

/** A DNS pod's queries to its upstream. */
const upstream = (
  count: number,
  everyMs: number,
  reply: { readonly tookMs: number; readonly rcode?: number },
): Captured[][] =>
  Array.from({ length: count }, (_, i) => {
    const outside = names.filter((name) => name.includes('example'));
    const way = ends('10.244.3.2', 31_000 + i, '192.0.2.53');
    const type = i % 2 === 0 ? 'A' : 'AAAA';
    const name = `${outside[(i >> 1) % outside.length]!}.`;
    return asked(i * everyMs, way, name, 300 + i, { ...reply, type });
  });

export const fewQueriesStories: readonly Story[] = [
  played(
    'S6 a CPU limit stops the server for most of each second: nothing is lost, and cluster names are late',
    'ND7001',
    () => few(),
    later(throttled),
  ),
  played(
    'clean: the name server is far away, and takes equally long for every query',
    null,
    () => few(),
    (passing) => ({ ...healthy(passing), tookMs: 110 + passing.random.integer(15) }),
  ),
  {
    name: 'the cache of the node hangs in the last seconds of a capture: three programs wait for it, and send no other queries',
    code: 'ND3007',
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...series('10.244.1.7', '169.254.20.10', 150, 80, (i) => ({
            name: `${names[(i + seed) % 7]!}.`,
            tookMs: 0.5,
          })),
          ...[11_900, 16_900].flatMap((ms) => [0, 1, 2].map((program) => waits(ms, program))),
        ]),
      ),
  },
  {
    name: 'the upstream stops in the middle of a second that began well',
    code: 'ND3007',
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...series('10.244.3.2', '192.0.2.53', 200, 73, (i) => ({
            name: `${names[(i + seed) % 7]!}.`,
            tookMs: i * 73 < 6600 ? 4 : null,
          })),
          // It gets many queries in the second during which it stops.
          ...series('10.244.4.2', '192.0.2.53', 30, 20, (i) => ({
            name: `${names[(i + seed) % 7]!}.`,
            tookMs: i < 14 ? 4 : null,
          })).map((packets) =>
            packets.map((packet) => ({ ...packet, timeMs: packet.timeMs + 6320 })),
          ),
        ]),
      ),
  },
  {
    name: 'a DNS pod leaves two names without a reply from some moment on, and answers the others',
    code: 'ND3010',
    packets: () =>
      Promise.resolve(
        inOrder(
          series(
            '10.244.1.7',
            '10.244.3.2',
            60,
            330,
            someNames((i) => i >= 30),
          ),
        ),
      ),
  },
  {
    name: 'the upstream leaves two names without a reply, and the DNS pods answer SERVFAIL to all clients',
    code: 'ND3010',
    packets: async (seed) => {
      const clients = await play(
        pods('glibc', 3, {
          lookups: 12,
          names: ['hooks.dead.example', 'registry.dead.example', ...names],
        }),
        (passing) =>
          /^[a-z]+\.dead\.example\.$/.test(passing.name)
            ? { rcode: 2, tookMs: 2000 }
            : healthy(passing),
        { seed },
      );
      return inOrder([
        clients,
        ...series(
          '10.244.3.2',
          '192.0.2.53',
          90,
          100,
          someNames(() => true),
        ),
      ]);
    },
  },
  played(
    'S13 a search domain is dropped from some moment on, and few programs pass it',
    'ND2003',
    () =>
      pods('musl', 1, {
        lookups: 12,
        everyMs: 2300,
        resolvConf: corpResolvConf,
        names: names.slice(0, 3),
      }),
    later((passing) =>
      passing.name.endsWith('.corp.example.') ? { lost: true } : healthy(passing),
    ),
  ),
  {
    name: 'the upstream answers SERVFAIL at once, and the DNS pods forward it',
    code: 'ND4002',
    packets: async (seed) => {
      const clients = await play(
        few(),
        (passing) =>
          isOutside(passing)
            ? { rcode: 2, tookMs: 0.8 + passing.random.integer(3) / 10 }
            : healthy(passing),
        { seed },
      );
      return inOrder([clients, ...upstream(90, 230, { tookMs: 0.4, rcode: 2 })]);
    },
  },
  played(
    'the server hangs for five seconds, and all programs of one pod wait for it',
    'ND3007',
    () => pods('glibc', 1, { lookups: 100, everyMs: 200 }),
    (passing) =>
      passing.atMs >= ONSET && passing.atMs < ONSET + 4900
        ? { ...healthy(passing), tookMs: ONSET + 4900.2 - passing.atMs }
        : healthy(passing),
  ),
  {
    ...played(
      'the cache of a node hangs for thirteen seconds, and then answers the clients that still wait: some have given up',
      'ND3007',
      () => pods('glibc', 6, { lookups: 60, everyMs: 450 }),
      (passing) => {
        if (passing.atMs < ONSET || passing.atMs >= ONSET + 13_000) return healthy(passing);
        const isHeard = passing.atMs >= ONSET + 8000 || passing.port % 3 === 0;
        return isHeard
          ? { ...healthy(passing), tookMs: ONSET + 13_000.2 - passing.atMs }
          : { lost: true };
      },
    ),
    without: ['ND7001'],
  },
  played(
    'two of three DNS pods are cut off at one moment and stay endpoints: their node, or the network between nodes',
    'ND3008',
    () => few(),
    (passing) => {
      const pod = (passing.port + passing.client.length) % 3;
      const fate = { ...healthy(passing), behind: `10.244.9.${pod + 1}` };
      return passing.atMs >= ONSET && pod > 0 ? { ...fate, lost: true } : fate;
    },
  ),
  {
    name: 'the upstream takes a second, and the servers between it and the pods leave some queries without a reply',
    code: 'ND4003',
    packets: async (seed) => {
      const clients = await play(
        few(),
        (passing) => {
          const fate = healthy(passing);
          if (!isOutside(passing)) return fate;
          const isFirst = passing.attempt === 1 && some(passing, 0.2);
          return isFirst ? { lost: true } : { ...fate, tookMs: 900 + passing.random.integer(500) };
        },
        { seed },
      );
      return inOrder([clients, ...upstream(90, 230, { tookMs: 900 })]);
    },
  },
  {
    name: 'a logging program looks up the names of addresses, most of which have none',
    code: 'ND2006',
    packets: async (seed) =>
      inOrder([
        await play(few(), healthy, { seed }),
        ...Array.from({ length: 600 }, (_, i) =>
          asked(
            i * 33,
            ends('10.244.1.30', 20_000 + i),
            `${i % 250}.${i % 7}.60.10.in-addr.arpa.`,
            i + 1,
            { type: 'PTR', rcode: 3 },
          ),
        ),
      ]),
  },
  {
    name: 'a program looks up the names of IPv6 addresses, and the capture has only the beginning of these questions',
    code: 'ND2006',
    packets: async (seed) =>
      begun(
        inOrder([
          await play(few(), healthy, { seed }),
          ...Array.from({ length: 400 }, (_, i) => {
            const [host, net] = [(i % 250).toString(16).padStart(2, '0'), (i % 7) + 1];
            const name = `${host[1]!}.${host[0]!}.${'0.'.repeat(14)}${net}.0.0.0.7.7.0.0.8.b.d.0.1.0.0.2.ip6.arpa.`;
            return asked(i * 33, ends('10.244.1.30', 20_000 + i), name, i + 1, {
              type: 'PTR',
              rcode: 3,
            });
          }),
        ]),
        80,
      ),
  },
  {
    name: 'the conntrack table is full from some moment on: few new sockets, and an old one',
    code: 'ND3003',
    packets: async (seed) => {
      const fresh = await play(
        pods('glibc', 3, { lookups: 14, everyMs: 700 }),
        byAge((passing) => passing.atMs >= ONSET && some(passing, 0.84)),
        { seed },
      );
      const kept = Array.from({ length: 110 }, (_, i) =>
        asked(i * 200, ends('10.244.1.200', 40_000), `${names[i % 2]!}.`, 100 + i),
      );
      return inOrder([fresh, ...kept]);
    },
  },
  {
    name: 'S19 a limit on packets begins during a burst, and ends before another one',
    code: 'ND4001',
    packets: () => {
      let [tokens, lastMs] = [20, 0];
      const crowd = (at: number): Captured[][] =>
        Array.from({ length: 130 }, (_, i) => {
          const ms = at * 3000 + i * 3;
          const limited = (at === 1 && i > 50) || at === 2 || at === 3;
          tokens = Math.min(20, tokens + (ms - lastMs) / 10);
          lastMs = ms;
          const passes = !limited || tokens >= 1;
          if (limited && passes) tokens--;
          return asked(ms, ends('10.244.1.7', 20_000 + at * 200 + i), `${names[i % 7]!}.`, i + 1, {
            tookMs: passes ? 0.5 : null,
          });
        });
      return Promise.resolve(inOrder([0, 1, 2, 3, 4, 5].flatMap(crowd)));
    },
  },
];
