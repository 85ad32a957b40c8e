/**
 * Examples where the loss depends on the socket: either on whether it is new, or on the translated destination of its
 * packets.
 */
import { seededRandom } from '../../src/server/base/random.ts';
import { back, TCP, tcpPacket, type Captured, type Ends } from './packets.ts';
import { healthy, play, STORY_START, type Passing, type StoryClient } from './story.ts';
import {
  asked,
  byAge,
  at,
  ends,
  everybody,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';

/** Pods that use one socket per search, per name, or per query. */
const allSorts = (lookups: number): StoryClient[] => [
  ...everybody(lookups),
  ...pods('c-ares', 3, { lookups, from: 120 }),
];

/** A pod whose program reuses one socket, and the fate of its queries. */
function keptSocket(count: number, everyMs: number, lost: (i: number) => boolean): Captured[][] {
  return Array.from({ length: count }, (_, i) =>
    asked(i * everyMs, ends('10.244.1.200', 40_000), `${names[i % 2]!}.`, 100 + i, {
      tookMs: lost(i) ? null : 0.6,
    }),
  );
}

/** Connections other than DNS, some of which have to retry. */
export function connections(
  count: number,
  everyMs: number,
  lost: (i: number) => boolean,
): Captured[] {
  return Array.from({ length: count }, (_, i): Captured[] => {
    const way: Ends = {
      from: `10.244.1.${(i % 9) + 1}`,
      fromPort: 33_000 + i,
      to: `10.96.7.${(i % 20) + 1}`,
      toPort: 443,
    };
    const syn = tcpPacket(way, 100, TCP.SYN);
    const answer = tcpPacket(back(way), 1, TCP.SYN | TCP.ACK);
    const startMs = i * everyMs;
    return lost(i)
      ? [at(startMs, syn), at(startMs + 1000, syn), at(startMs + 1001, answer)]
      : [at(startMs, syn), at(startMs + 1, answer)];
  }).flat();
}

/** True if the socket's packets are translated to the only dead replica. */
const isTakenToDead = ({ client, port }: Passing, replicas: number): boolean =>
  ((port + Number(client.split('.').at(-1)) * 131) * 2654435761) % 4096 < 4096 / replicas;

const PODS = ['10.244.3.2', '10.244.4.2', '10.244.5.2'] as const;

/**
 * Pods to which a client's sockets are translated in turn, captured after translation. At some point, the second pod
 * stops replying.
 */
function inTurn(from: number, count: number): Captured[][] {
  const client = `10.244.1.${from}`;
  return Array.from({ length: 90 }, (_, i) => {
    const pod = PODS[(i + from) % count]!;
    const isDead = pod === PODS[1] && i * 270 > 9000;
    const name = `${['db.shop', 'redis.cache'][i % 2]}.svc.cluster.local.`;
    const ways = (atMs: number): Captured[] =>
      asked(atMs, ends(client, 30_000 + i, pod), name, 500 + i, {
        ...(isDead && { tookMs: null }),
      });
    return [...ways(i * 270 + from), ...(isDead ? ways(i * 270 + from + 2500) : [])];
  });
}

/**
 * Three programs in a pod. Each of their sockets is translated to one of two servers behind an address. One server dies
 * after eight seconds, and the last sockets of all three programs are translated to it.
 */
function lastOnesAstray(seed: number): Captured[][] {
  const random = seededRandom(seed);
  let port = 30_000;
  return [0, 1, 2].flatMap((program) => {
    const packets: Captured[][] = [];
    for (let ms = 50 + program * 83; ms < 30_000;) {
      const way = ends('10.244.1.7', port++);
      const name = `${names[port % names.length]!.replace(/^([a-z]+)$/, '$1.shop.svc.cluster.local')}.`;
      const isDead = ms > 22_000 || (ms > 8000 && random.integer(3) === 0);
      for (const atMs of isDead ? [ms, ms + 2500] : [ms])
        for (const [i, type] of ['A', 'AAAA'].entries())
          packets.push(
            asked(atMs + i * 0.1, way, name, 2 * (port - 30_000) + i, {
              type,
              ...(isDead && { tookMs: null }),
            }),
          );
      ms += isDead ? 5000 : ms < 8000 ? 60 : 260;
    }
    return packets;
  });
}

/**
 * A list of three servers that are used in turn, the second of which is dead. Its unanswered queries are sent to the
 * third, with the same ID.
 */
const alongTheList: readonly Captured[][] = Array.from({ length: 60 }, (_, i): Captured[] => {
  const name = `svc${i}.shop.svc.cluster.local.`;
  const ask = (server: number, atMs: number, port: number): Captured[] =>
    asked(atMs, ends('10.244.1.7', port, PODS[server]!), name, 500 + i, {
      tookMs: server === 1 ? null : 0.6,
    });
  return i % 3 === 1
    ? [...ask(1, i * 400, 30_000 + i), ...ask(2, i * 400 + 3000, 40_000 + i)]
    : ask(i % 3, i * 400, 30_000 + i);
});

/**
 * A client that sends pairs of A and AAAA from one port, and also single queries for the same names. Some of both are
 * lost; in pairs, it is mostly the second. Retries are answered.
 */
function lossyClient(): Captured[] {
  const packets: Captured[] = [];
  const ask = (atMs: number, port: number, type: string, isLost: boolean): void => {
    const name = `${['www', 'api'][port % 2]}.example.com.`;
    const id = (port - 30_000) * 2 + (type === 'A' ? 0 : 1);
    const way = ends('10.244.1.21', port);
    packets.push(...asked(atMs, way, name, id, { type, tookMs: isLost ? null : 0.6 }));
    if (isLost) packets.push(...asked(atMs + 5000, way, name, id, { type }));
  };
  for (let i = 0; i < 180; i++) {
    const [atMs, port] = [i * 300, 30_000 + i];
    const isPair = i % 3 === 0;
    ask(atMs, port, 'A', isPair ? i === 99 : i % 16 === 1);
    if (isPair) ask(atMs + 0.1, port, 'AAAA', i % 30 === 0);
  }
  return inOrder([packets]);
}

export const socketStories: readonly Story[] = [
  {
    name: 'queries are lost by chance, alone as often as in pairs, and of pairs mostly the second',
    code: 'ND3013',
    without: ['ND3001'],
    packets: () => Promise.resolve(lossyClient()),
  },
  {
    name: 'one of two DNS pods is silent from some moment on, seen from one pod, and the last sockets are all translated to it',
    code: 'ND3008',
    without: ['ND3007'],
    // In these, all three programs wait for the dead server at the same time, repeatedly.
    seeds: [5, 16],
    packets: (seed) => Promise.resolve(inOrder(lastOnesAstray(seed))),
  },
  {
    name: 'one of two DNS pods is silent from some moment on, seen after the translation: sockets are still translated to it',
    code: 'ND3008',
    packets: () => Promise.resolve(inOrder([...inTurn(11, 2), ...inTurn(14, 2), ...inTurn(19, 2)])),
  },
  {
    name: 'one of three DNS pods is silent from some moment on, and the capture ends within seconds of it',
    code: 'ND3008',
    without: ['ND3007'],
    packets: async (seed) => {
      const packets = await play(
        [
          ...pods('glibc', 4, { lookups: 60, everyMs: 250 }),
          ...pods('go', 3, { lookups: 60, everyMs: 250, from: 80 }),
        ],
        (passing) => {
          const drawn =
            (((passing.port + Number(passing.client.split('.').at(-1)) * 131) * 2654435761) >>> 8) %
            3;
          const behind = PODS[drawn]!;
          return drawn === 1 && passing.atMs > 8000
            ? { lost: true, behind }
            : { ...healthy(passing), behind };
        },
        { seed },
      );
      return packets.filter(({ timeMs }) => timeMs < STORY_START + 15_500);
    },
  },
  {
    name: 'the cache of a node uses three DNS pods in turn, one of which is dead: its own late replies are not another fault',
    code: 'ND3008',
    without: ['ND7001', 'ND4003'],
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 120 }, (_, i): Captured[] => {
            const name = `svc${(i * 7 + seed) % 20}.shop.svc.cluster.local.`;
            const pod = (i + seed) % 3;
            const isLate = pod === 1;
            const behind = (to: number, ms: number, port: number): Captured[] =>
              asked(i * 200 + ms, ends('10.0.7.1', port, PODS[to]!), name, port, {
                tookMs: to === 1 ? null : 0.6,
              });
            const way = ends(`10.244.1.${1 + (i % 4)}`, 30_000 + i, '169.254.20.10');
            return [
              ...asked(i * 200, way, name, 900 + i, { tookMs: isLate ? 2002 : 1.8 }),
              ...behind(pod, 0.5, 40_000 + i),
              ...(isLate ? behind(2, 2000.8, 50_000 + i) : []),
            ];
          }),
        ),
      ),
  },
  {
    name: 'one of three DNS pods is dead, seen after the translation: a retry from a new socket reuses the id, and reaches the dead one again',
    code: 'ND3008',
    without: ['ND3005'],
    packets: (seed) =>
      Promise.resolve(
        inOrder(
          [7, 8, 9, 10].flatMap((client) =>
            Array.from({ length: 50 }, (_, i): Captured[] => {
              const pod = (turn: number): number =>
                Math.imul(i * 4 + turn + client * 997 + seed, 0x9e3779b1) >>> 16;
              const ask = (turn: number, atMs: number): Captured[] => {
                const taken = pod(turn) % 3;
                const sent = asked(
                  atMs,
                  ends(`10.244.1.${client}`, 30_000 + i * 4 + turn, PODS[taken]!),
                  `svc${i % 7}.shop.svc.cluster.local.`,
                  500 + i,
                  { tookMs: taken === 1 ? null : 0.6 },
                );
                return taken === 1 && turn < 3 ? [...sent, ...ask(turn + 1, atMs + 1000)] : sent;
              };
              return ask(0, i * 500 + client * 31);
            }),
          ),
        ),
      ),
  },
  {
    name: 'one of two pods is cut off from some moment on: others do not look up its names',
    code: 'ND3004',
    without: ['ND3010'],
    packets: (seed) =>
      play(
        [
          ...pods('c-ares', 1, {
            lookups: 30,
            everyMs: 800,
            names: ['www.example.com', 'db', 'api.example.org', 'mail.example.com'],
          }),
          ...pods('glibc', 1, {
            lookups: 30,
            everyMs: 800,
            from: 30,
            names: ['backend', 'redis.cache', 'static.example.org'],
          }),
        ],
        (passing) =>
          passing.client === '10.244.1.1' && passing.atMs > 7000
            ? { lost: true }
            : healthy(passing),
        { seed },
      ),
  },
  {
    name: 'one of three servers that a client uses in turn is dead: the next gets the query with the same id',
    code: 'ND3005',
    packets: () => Promise.resolve(inOrder(alongTheList)),
  },
  {
    name: 'S20 the conntrack table is full for seconds: new sockets get nothing, old ones still work',
    code: 'ND3003',
    packets: async (seed) => {
      const isFull = ({ atMs }: Passing): boolean => atMs % 5000 > 3200;
      const fresh = await play(allSorts(12), byAge(isFull), { seed });
      return inOrder([fresh, ...keptSocket(120, 80, () => false)]);
    },
  },
  {
    name: 'S20 the conntrack table is full for seconds, and a few sockets get in: no socket is reused, and other connections are affected too',
    code: 'ND3003',
    without: ['ND3090', 'ND3007'],
    packets: async (seed) => {
      // There is room for one in eight sockets of any kind.
      const isFull = (atMs: number): boolean => atMs % 9000 > 4000;
      const taken = new Map<string, boolean>();
      const dns = await play(
        [...pods('musl', 6, { lookups: 24 }), ...pods('glibc', 4, { from: 40, lookups: 24 })],
        (passing) => {
          const socket = `${passing.client} ${passing.port}`;
          const isKnown = taken.get(socket) === true;
          const isTaken =
            isKnown || !isFull(passing.atMs) || (passing.sincePortMs > 1 && some(passing, 0.14));
          if (!taken.has(socket) || isTaken) taken.set(socket, isTaken);
          return taken.get(socket) === true ? healthy(passing) : { lost: true };
        },
        { seed },
      );
      return inOrder([dns, connections(260, 100, (i) => isFull(i * 100) && i % 8 > 0)]);
    },
  },
  {
    name: 'S20 the conntrack table is full three times for seconds: hardly any socket is reused, but other connections are affected too',
    code: 'ND3003',
    without: ['ND3007'],
    packets: async (seed) => {
      const isFull = (ms: number): boolean => ms % 9000 > 3600 && ms % 9000 < 8000;
      const fresh = await play(
        [...pods('glibc', 4, { lookups: 40 }), ...pods('go', 2, { lookups: 40, from: 80 })],
        byAge(({ atMs }) => isFull(atMs)),
        { seed },
      );
      // A program that reuses its socket and only sends a query occasionally.
      const kept = Array.from({ length: 9 }, (_, i) =>
        asked(1000 + i * 2900, ends('10.244.1.200', 40_000), `${names[i % 2]!}.`, 100 + i),
      );
      return inOrder([fresh, kept.flat(), connections(250, 100, (i) => isFull(i * 100))]);
    },
  },
  ...['glibc', 'musl', 'go'].map((resolver) =>
    played(
      `a firewall lets replies pass to a part of the ephemeral ports only: ${resolver}`,
      'ND3020',
      () => pods(resolver, 5, { lookups: 40, everyMs: 600 }),
      (passing) =>
        passing.port >= 34_000 && passing.port < 44_000 ? { lost: true } : healthy(passing),
    ),
  ),
  {
    name: 'the link repeatedly goes down for seconds: a client that reuses a socket along the search path is answered before and afterwards',
    code: 'ND3007',
    without: ['ND3003'],
    packets: (seed) =>
      play(
        [
          ...pods('c-ares', 5, { lookups: 60, everyMs: 500 }),
          ...pods('glibc', 6, { lookups: 60, everyMs: 500, from: 40 }),
        ],
        ({ atMs, ...passing }) =>
          atMs % 7300 > 4700 ? { lost: true } : healthy({ atMs, ...passing }),
        { seed },
      ),
  },
  {
    name: 'the link of a node goes down three times for seconds: not only DNS',
    code: 'ND3090',
    without: ['ND3002'],
    packets: async (seed) => {
      const isDown = (ms: number): boolean => ms % 9000 > 3600 && ms % 9000 < 8000;
      const queries = await play(
        [...pods('glibc', 4, { lookups: 40 }), ...pods('go', 2, { lookups: 40, from: 80 })],
        (passing) => (isDown(passing.atMs) ? { lost: true } : healthy(passing)),
        { seed },
      );
      const kept = keptSocket(90, 290, (i) => isDown(i * 290));
      return inOrder([queries, kept.flat(), connections(250, 100, (i) => isDown(i * 100))]);
    },
  },
  {
    name: 'S20 the conntrack table occasionally has room: sockets of all protocols come too late',
    code: 'ND3003',
    packets: async (seed) => {
      const clients = [
        ...pods('glibc', 5, { lookups: 9 }),
        ...pods('go', 4, { lookups: 9, from: 80 }),
      ];
      const refused = new Set<string>();
      // A and AAAA queries sent at the same time find the table in the same state.
      const isFull = (passing: Passing): boolean => {
        const key = `${passing.client} ${passing.port} ${Math.floor(passing.atMs / 100)}`;
        if (passing.sincePortMs === Infinity && some(passing, 0.2)) refused.add(key);
        return refused.has(key);
      };
      const fresh = await play(clients, byAge(isFull), { seed });
      const others = connections(40, 200, (i) => (i + seed) % 3 === 0);
      return inOrder([fresh, others, ...keptSocket(110, 80, () => false)]);
    },
  },
  {
    name: 'S23 not DNS: packets of any kind are lost, of old sockets too',
    code: 'ND3090',
    packets: async (seed) => {
      const dns = await play(
        pods('glibc', 5, { lookups: 9 }),
        (passing) => (some(passing, 0.14) ? { lost: true } : healthy(passing)),
        { seed },
      );
      const others = connections(60, 150, (i) => (i + seed) % 6 === 0);
      return inOrder([dns, others, ...keptSocket(110, 80, (i) => (i + seed) % 7 === 0)]);
    },
  },
  {
    name: 'random loss, of old and new sockets alike',
    code: 'ND3013',
    packets: async (seed) => {
      const dns = await play(
        allSorts(8),
        (passing) => (some(passing, 0.08) ? { lost: true } : healthy(passing)),
        { seed },
      );
      return inOrder([dns, ...keptSocket(80, 80, (i) => (i + seed) % 13 === 0)]);
    },
  },
  played(
    'one of four DNS pods is dead, seen from the pods only',
    'ND3008',
    () => [...pods('glibc', 4, { lookups: 9 }), ...pods('musl', 3, { lookups: 9, from: 40 })],
    (passing) => (isTakenToDead(passing, 4) ? { lost: true } : healthy(passing)),
  ),
  {
    name: 'one of three DNS pods is dead, and a program that reuses its socket has a living one',
    code: 'ND3008',
    packets: async (seed) => {
      const dns = await play(
        allSorts(9),
        (passing) => (isTakenToDead(passing, 3) ? { lost: true } : healthy(passing)),
        { seed },
      );
      return inOrder([dns, ...keptSocket(200, 80, () => false)]);
    },
  },
  played(
    'one of three DNS pods is dead, seen from a single pod of glibc',
    'ND3008',
    () => pods('glibc', 1, { lookups: 10, everyMs: 12_000 }),
    (passing) => (isTakenToDead(passing, 3) ? { lost: true } : healthy(passing)),
  ),
  played(
    'one of two DNS pods is dead, seen from a single pod of c-ares',
    'ND3008',
    () => pods('c-ares', 1, { lookups: 14, everyMs: 12_000 }),
    (passing) => (isTakenToDead(passing, 2) ? { lost: true } : healthy(passing)),
  ),
  played(
    'one of three DNS pods is dead, seen from a single pod of Go, which uses a socket for each query',
    'ND3008',
    () => pods('go', 1, { lookups: 8, everyMs: 11_000 }),
    (passing) => (isTakenToDead(passing, 3) ? { lost: true } : healthy(passing)),
  ),
  played(
    'one query in twelve of a single pod of Go is lost, A and AAAA alike',
    'ND3013',
    () => pods('go', 1, { lookups: 24, everyMs: 11_000 }),
    (passing) => (some(passing, 0.08) ? { lost: true } : healthy(passing)),
  ),
  {
    name: 'S12 a rollout, with a program that reuses its socket',
    code: 'ND3007',
    packets: async (seed) => {
      const isAway = (ms: number): boolean => ms > 3000 && ms < 6200;
      const dns = await play(
        allSorts(14),
        (passing) => (isAway(passing.atMs) ? { lost: true } : healthy(passing)),
        { seed },
      );
      return inOrder([dns, ...keptSocket(120, 80, (i) => isAway(i * 80))]);
    },
  },
];
