/** Examples of search domains that fail intermittently. */
import { healthy, play, type Fate, type Passing } from './story.ts';
import {
  asked,
  begun,
  corpResolvConf,
  ends,
  inOrder,
  names,
  played,
  pods,
  some,
  type Story,
} from './story-parts.ts';
import type { Captured } from './packets.ts';

/** Three periods of four seconds each, in milliseconds. */
const isBadTime = (atMs: number): boolean =>
  atMs >= 4000 && (atMs - 4000) % 10_000 < 4000 && atMs < 30_000;

/** Queries for names under the domain fail immediately at these times. */
const failsAtTimes =
  (fate: Fate) =>
  (passing: Passing): Fate =>
    passing.name.endsWith('.corp.example.') && isBadTime(passing.atMs) ? fate : healthy(passing);

const servfail: Fate = { rcode: 2, tookMs: 0.7 };

const outside = ['www.example.com', 'mail.example.com', 'static.example.org', 'img.example.org'];
const inLongNamespace = corpResolvConf.replace('shop.svc', 'shop-staging.svc');

/** Pods with the domain in their search path. */
const searching = (resolver: string, count: number, from: number): ReturnType<typeof pods> =>
  pods(resolver, count, { lookups: 40, everyMs: 850, resolvConf: corpResolvConf, from });

/**
 * At some point, the upstream stops answering queries for names under the domain. The DNS pod waits for it and then
 * answers SERVFAIL, which is too late.
 */
async function lateThroughPod(seed: number): Promise<readonly Captured[]> {
  const upstream: Captured[][] = [];
  const clients = await play(
    [...searching('glibc', 3, 1), ...searching('go', 1, 40)],
    (passing) => {
      const { atMs, name, type } = passing;
      const isBelow = name.endsWith('.corp.example.');
      if (name.endsWith('.cluster.local.')) return healthy(passing);
      const [port, id] = [20_000 + upstream.length, upstream.length];
      const isLost = isBelow && atMs > 12_000;
      upstream.push(
        asked(atMs + 0.3, ends('10.244.3.2', port, '192.0.2.53'), name, id, {
          type,
          tookMs: isLost ? null : 4,
          rcode: isBelow ? 3 : 0,
        }),
      );
      return isLost ? { rcode: 2, tookMs: 3300 } : { ...healthy(passing), tookMs: 5 };
    },
    { seed },
  );
  return inOrder([clients, ...upstream]);
}

/** Examples with a single resolver, and with Alpine as one of several. */
export const searchStories: readonly Story[] = [
  {
    name: 'external names are tried with four search domains, and the capture has the beginnings of packets',
    code: 'ND2001',
    packets: async (seed) =>
      begun(
        await play(
          [
            ...pods('glibc', 3, { lookups: 12, names: outside, resolvConf: inLongNamespace }),
            ...pods('go', 2, {
              lookups: 12,
              names: outside,
              resolvConf: inLongNamespace,
              from: 40,
            }),
          ],
          healthy,
          { seed },
        ),
        76,
      ),
  },
  ...['glibc', 'go'].map((resolver) =>
    played(
      `a search domain fails for some seconds, several times: one client (${resolver})`,
      'ND2003',
      () => searching(resolver, 1, 1),
      failsAtTimes(servfail),
    ),
  ),
  {
    name: 'no server answers for a search domain, and of some names below it the capture has only the beginning',
    code: 'ND2003',
    without: ['ND3013'],
    packets: async (seed) =>
      begun(
        await play(
          [...searching('glibc', 3, 1), ...searching('go', 2, 40)],
          (passing) =>
            passing.name.endsWith('.corp.example.') ? { lost: true } : healthy(passing),
          { seed },
        ),
        75,
      ),
  },
  {
    name: 'an upstream stops answering names below a search domain, and the DNS pod is late with them',
    code: 'ND2003',
    without: ['ND4003'],
    packets: lateThroughPod,
  },
  played(
    'a search domain refuses for some seconds, several times',
    'ND2003',
    () => searching('glibc', 2, 1),
    failsAtTimes({ rcode: 5, tookMs: 0.7 }),
  ),
  played(
    'a search domain answers SERVFAIL to a third of the lookups that pass it',
    'ND2003',
    () => searching('go', 3, 1),
    (passing) =>
      passing.name.endsWith('.corp.example.') && Math.floor(passing.atMs / 400) % 3 === 0
        ? servfail
        : healthy(passing),
  ),
  ...['c-ares', 'glibc', 'go'].flatMap((resolver) => [
    {
      ...played(
        `a search domain answers SERVFAIL to two queries of five, and the capture has one client: ${resolver}`,
        'ND2003',
        () => searching(resolver, 1, 1),
        (passing) =>
          passing.name.endsWith('.corp.example.') && some(passing, 0.4)
            ? servfail
            : healthy(passing),
      ),
      // In these, many lookups of c-ares end at the domain, or few queries fail.
      seeds: [5, 35],
    },
    played(
      `queries below a search domain get no reply for some seconds, or on retry: ${resolver}`,
      'ND2003',
      () => searching(resolver, 2, 1),
      failsAtTimes({ lost: true }),
    ),
  ]),
  played(
    'a search domain answers SERVFAIL after two seconds, for some seconds, several times',
    'ND2003',
    () => searching('glibc', 2, 1),
    failsAtTimes({ rcode: 2, tookMs: 2000 }),
  ),
  {
    ...played(
      'a search domain fails for some seconds: Alpine repeats the same name, which is not a cached failure',
      'ND2003',
      () =>
        pods('musl', 1, {
          lookups: 60,
          everyMs: 300,
          resolvConf: corpResolvConf,
          names: [...names.slice(2, 5), names[0]!, names[1]!, names[0]!],
        }),
      (passing) =>
        passing.name.endsWith('.corp.example.') && passing.atMs > 9000 && passing.atMs < 13_000
          ? servfail
          : healthy(passing),
    ),
    without: ['ND4007'],
  },
  {
    ...played(
      'the upstream fails for some seconds, several times, for all names: also for those of a search domain',
      'ND4002',
      () => searching('glibc', 3, 1),
      (passing) =>
        !passing.name.endsWith('.cluster.local.') && isBadTime(passing.atMs)
          ? { rcode: 2, tookMs: 3 }
          : healthy(passing),
    ),
    without: ['ND2003'],
  },
  {
    ...played(
      'queries with EDNS are dropped: only clients with EDNS look up names of one search domain',
      'ND4009',
      () => [
        ...pods('glibc', 6, { lookups: 60, everyMs: 300, names: ['db', 'backend'] }),
        ...pods('go', 3, {
          lookups: 8,
          everyMs: 1500,
          from: 40,
          names: ['db.shop.svc.cluster.local', 'backend.shop.svc.cluster.local'],
          resolvConf:
            'nameserver 10.96.0.10\nsearch corp.example\noptions ndots:1 timeout:1 attempts:1\n',
        }),
      ],
      (passing) => (isGo(passing.client) ? { lost: true } : healthy(passing)),
    ),
    without: ['ND2003'],
  },
];

/** Go uses EDNS, while glibc does not. */
function isGo(client: string): boolean {
  return Number(client.split('.')[3]) >= 40;
}
