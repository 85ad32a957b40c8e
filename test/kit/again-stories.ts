/** Examples where questions are repeated although they were answered, and similar cases. */
import { healthy } from './story.ts';
import {
  asked,
  ends,
  everybody,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';
import type { Captured } from './packets.ts';

const CODE = 'ND3021';

/** Replies that are seen in the capture, although some never reach their clients. */
const unreceived = (resolver: string, share: number): Story => ({
  ...played(
    `replies get lost behind the capture (${resolver})`,
    CODE,
    () => pods(resolver, 6, { lookups: 14, everyMs: 900 }),
    (passing) => ({ ...healthy(passing), unreceived: some(passing, share) }),
  ),
  seen: /were repeated/,
});

/** A program that queries one name every 5 s, with a jitter of a few milliseconds. */
const everyFiveSeconds = (id: (i: number) => number): Captured[] =>
  inOrder(
    Array.from({ length: 12 }, (_, i) =>
      asked(i * 5001 + (i % 3), ends('10.244.1.201', 41_000 + i), 'www.example.com.', id(i), {}),
    ),
  );

/** Every query the DNS pod sends out returns to it from the node, with its ID. */
function returning(): Captured[][] {
  const [pod, node, upstream] = ['10.244.0.2', '192.168.7.1', '192.168.7.53'];
  return Array.from({ length: 8 }, (_, lookup) => {
    const startMs = lookup * 3000;
    const name = `${names[lookup % 2]!}.`;
    const lost = { tookMs: null };
    const first = asked(
      startMs,
      ends('10.244.1.9', 35_000 + lookup, pod),
      name,
      700 + lookup,
      lost,
    );
    const rounds = Array.from({ length: 20 }, (_, round) => [
      ...asked(
        startMs + 1 + round * 4,
        ends(pod, 20_000 + lookup * 100 + round, upstream),
        name,
        700 + lookup,
        lost,
      ),
      ...asked(
        startMs + 3 + round * 4,
        ends(node, 40_000 + lookup * 100 + round, pod),
        name,
        700 + lookup,
        lost,
      ),
    ]).flat();
    return [...first, ...rounds];
  });
}

/** A DNS pod alternates between two upstreams, one of which takes twenty times as long. */
const oneIsSlow = (ms: number): Captured[] =>
  inOrder(
    Array.from({ length: 80 }, (_, i) =>
      asked(
        i * 200,
        ends('10.244.0.2', 30_000 + i, `192.168.7.${53 + (i % 2)}`),
        `${names[(i >> 1) % 2]!}.`,
        900 + i,
        { tookMs: i % 2 === 0 ? 2 : ms },
      ),
    ),
  );

export const againStories: readonly Story[] = [
  unreceived('glibc', 0.1),
  unreceived('musl', 0.1),
  unreceived('go', 0.15),
  unreceived('c-ares', 0.1),
  {
    name: 'a program that asks for one name every 5 s loses nothing',
    code: null,
    without: [CODE],
    packets: async () => everyFiveSeconds((i) => 100 + i * 37),
  },
  {
    name: 'a program that asks every 5 s with one id loses nothing',
    code: null,
    without: [CODE],
    packets: async () => everyFiveSeconds(() => 4711),
  },
  {
    ...played(
      'clients lose queries, and retry both families',
      'ND3013',
      () => everybody(12),
      (passing) => (some(passing, 0.08) ? { lost: true } : healthy(passing)),
    ),
    without: [CODE],
  },
  {
    name: 'one of two upstream servers takes twenty times as long',
    code: 'ND4003',
    seen: /^Half of the replies from 192\.168\.7\.54 took more than/,
    packets: async () => oneIsSlow(40),
  },
  {
    name: 'one of two upstream servers takes twice as long',
    code: null,
    without: ['ND4003'],
    packets: async () => oneIsSlow(4),
  },
  {
    name: 'a forwarding loop that returns from another address than the queried one',
    code: 'ND4004',
    packets: async () => inOrder(returning()),
  },
  {
    ...played(
      'one service is an alias of an external name whose servers do not answer',
      'ND4031',
      () => [
        ...everybody(14),
        ...pods('glibc', 2, { lookups: 14, from: 130, names: ['legacy', 'db'] }),
      ],
      (passing) =>
        passing.name.startsWith('legacy.shop.') ? { rcode: 2, tookMs: 2000 } : healthy(passing),
    ),
    without: ['ND5001', 'ND7001', 'ND2002'],
  },
];
