/**
 * Examples with much healthy traffic that is unrelated to the fault, such as cluster names or queries before the fault.
 */
import { dnsMessage, icmpError, udpPacket, type Captured } from './packets.ts';
import { healthy, play, type Passing } from './story.ts';
import {
  asked,
  corpResolvConf,
  ends,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';

/** Names that a DNS pod forwards to its upstream. */
const isOutside = ({ name }: Passing): boolean => !name.endsWith('.cluster.local.');

/** The start of the fault, in milliseconds. */
const ONSET = 11_000;

/** Many service lookups that a DNS pod answers locally. */
const services = pods('glibc', 5, {
  lookups: 60,
  everyMs: 300,
  names: ['backend', 'db', 'redis.cache'],
  from: 40,
});

/**
 * Pods that look up external names all the time. Others have a company search domain and start at the same time as the
 * fault.
 */
const outsiders: typeof services = [
  ...pods('glibc', 3, { lookups: 26, everyMs: 500, names: names.slice(0, 2) }),
  ...pods('glibc', 2, {
    lookups: 4,
    everyMs: 600,
    names: ['mail.example.com', 'static.example.org'],
    resolvConf: corpResolvConf,
    from: 20,
  }).map((pod) => ({
    ...pod,
    lookups: pod.lookups.map((lookup) => ({ ...lookup, atMs: lookup.atMs + ONSET })),
  })),
];

export const sameWayStories: readonly Story[] = [
  {
    ...played(
      'the cache stores failures of all external names, including those of a search domain, and serves the cluster',
      'ND4007',
      () => [
        ...services,
        ...outsiders,
        ...pods('glibc', 3, { lookups: 40, everyMs: 500, names: names.slice(0, 2), from: 30 }),
      ],
      (passing) =>
        isOutside(passing) && passing.atMs >= ONSET ? { rcode: 2, tookMs: 0.5 } : healthy(passing),
    ),
    without: ['ND2003'],
  },
  {
    ...played(
      'the upstream falls silent: external names are lost, including those of a search domain',
      'ND3010',
      () => [...services, ...outsiders],
      (passing) =>
        isOutside(passing) && passing.atMs >= ONSET ? { lost: true } : healthy(passing),
    ),
    without: ['ND2003'],
  },
  {
    ...played(
      'from some moment on all external names are SERVFAIL, half of them in less than a millisecond, like good answers before',
      'ND4002',
      () => [...services, ...outsiders],
      (passing) =>
        isOutside(passing) && passing.atMs >= ONSET
          ? { rcode: 2, tookMs: some(passing, 0.5) ? 0.6 : 3 }
          : healthy(passing),
    ),
    without: ['ND4007'],
  },
  {
    name: 'the upstream answers SERVFAIL to every query: some names are queried more often',
    code: 'ND4002',
    without: ['ND4007'],
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 170 }, (_, i): Captured[] => {
            const name = i % 8 === 0 ? 'often.example.com.' : `n${i % 40}.example.com.`;
            const way = ends('10.244.3.2', 31_000 + i, '192.0.2.53');
            return asked(i * 90, way, name, 300 + i, { rcode: 2, tookMs: 0.4 });
          }),
        ),
      ),
  },
  {
    ...played(
      'AAAA of cluster names fails, A does not',
      'ND8002',
      () => pods('glibc', 4, { lookups: 12, names: ['backend', 'db', 'redis.cache'] }),
      (passing) => (passing.type === 'AAAA' ? { rcode: 2, tookMs: 0.6 } : healthy(passing)),
    ),
    without: ['ND5001'],
  },
  {
    ...played(
      'AAAA of a name fails after seconds, and A is answered from a cache: its servers may not reply to either',
      'ND8002',
      () =>
        pods('glibc', 3, {
          lookups: 12,
          names: ['backend', 'db', 'www.example.com', 'redis.cache'],
        }),
      (passing) =>
        passing.type === 'AAAA' && passing.name === 'www.example.com.'
          ? { rcode: 2, tookMs: 4000 }
          : healthy(passing),
    ),
    seen: /waits for another one that does not reply/,
  },
  {
    name: 'for two seconds any query to the upstream may fail, for some names by chance only AAAA',
    code: 'ND4002',
    without: ['ND8002'],
    packets: async (seed) =>
      inOrder([
        await play(pods('glibc', 2, { lookups: 10, names: names.slice(2, 5) }), healthy, { seed }),
        ...Array.from({ length: 480 }, (_, i): Captured[] => {
          const lookup = i >> 1;
          const ms = lookup * 30;
          const isBad = ms > 3000 && ms < 5000 && (lookup % 4 === i % 2 || lookup % 4 === 2);
          return asked(
            ms + (i % 2),
            ends('10.244.3.2', 31_000 + i, '192.0.2.53'),
            `n${lookup % 200}.example.com.`,
            300 + i,
            { type: i % 2 === 0 ? 'A' : 'AAAA', rcode: isBad ? 2 : 0, tookMs: 0.6 },
          );
        }),
      ]),
  },
  {
    name: 'the rules of the service’s address disappear during a capture, and clients that use the DNS pods directly are answered',
    code: 'ND3018',
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 120 }, (_, i) => [
            ...asked(
              i * 100,
              ends(`10.244.1.${7 + (i % 2)}`, 31_000 + i),
              'backend.shop.svc.cluster.local.',
              300 + i,
              { tookMs: i < 60 ? 0.6 : null },
            ),
            ...asked(
              i * 100 + 20,
              ends('10.244.1.90', 41_000 + i, `10.244.3.${1 + (i % 2)}`),
              'backend.shop.svc.cluster.local.',
              900 + i,
            ),
          ]),
        ),
      ),
  },
  {
    name: 'one pod is cut off during a capture, and the queries of others are seen at the DNS pods, after translation',
    code: 'ND3007',
    without: ['ND3018'],
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 120 }, (_, i) => [
            ...asked(
              i * 100,
              ends('10.244.1.7', 31_000 + i),
              'backend.shop.svc.cluster.local.',
              300 + i,
              { tookMs: i < 60 ? 0.6 : null },
            ),
            ...asked(
              i * 100 + 20,
              ends(`10.244.1.${90 + (i % 3)}`, 41_000 + i, `10.244.3.${1 + (i % 2)}`),
              'backend.shop.svc.cluster.local.',
              900 + i,
            ),
          ]),
        ),
      ),
  },
  {
    name: 'a rule rejects the queries of two pods, with an ICMP error',
    code: 'ND3004',
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 40 }, (_, i) => {
            const client = `10.244.1.${7 + (i % 2)}`;
            const query = asked(i * 200, ends(client, 31_000 + i), 'www.example.com.', 300 + i, {
              tookMs: null,
            });
            const error = icmpError('10.244.0.1', query[0]!.bytes, 3, 13, client);
            return [...query, { timeMs: query[0]!.timeMs + 0.1, bytes: error }];
          }),
        ),
      ),
  },
  {
    name: 'a rule rejects the queries of two pods after translation, where the node is the sender',
    code: 'ND3004',
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 40 }, (_, i) => {
            const pod = ends(`10.244.1.${7 + (i % 2)}`, 31_000 + i);
            const node = { ...pod, from: '10.244.1.1', to: '10.244.3.7' };
            const message = dnsMessage('www.example.com.', 'A', { id: 300 + i });
            const behind = udpPacket(node, message, 300 + i, 63);
            const error = icmpError('10.244.3.1', behind, 3, 13, node.from);
            return [udpPacket(pod, message, 300 + i), behind, error].map((bytes, nth) => ({
              timeMs: 1.7e12 + i * 200 + nth * 0.1,
              bytes,
            }));
          }),
        ),
      ),
  },
];
