/** Examples of names whose absence is cached in several caches with different expiry times, and similar patterns. */
import { RCODE } from '../../src/server/wire/iana.ts';
import type { DnsRecord } from '../../src/server/wire/message.ts';
import { soa } from './content-stories.ts';
import { given, others, type Given } from './given-answers.ts';
import { play, type Fate, type Passing } from './story.ts';
import { pods, type Story } from './story-parts.ts';

const NAME = 'fresh.shop.svc.cluster.local';
const servers = ['10.244.3.2', '10.244.4.2', '10.244.5.2'];

/**
 * The reply from one of several caches, chosen by the query's port. It is captured behind the service address, as on a
 * node, or only with that address.
 */
function byCache(
  cachedUntilMs: (cache: number, atMs: number) => number,
  { count = 3, isSeen = true } = {},
): (passing: Passing) => Fate {
  return ({ atMs, port, type }) => {
    const cache = port % count;
    const untilMs = cachedUntilMs(cache, atMs);
    const behind = isSeen ? { behind: servers[cache]! } : {};
    return atMs > untilMs
      ? { addresses: type === 'A' ? ['10.96.3.7'] : [], tookMs: 0.4, ...behind }
      : { rcode: 3, ttl: Math.ceil((untilMs - atMs) / 1000), tookMs: 0.3, ...behind };
  };
}

const asking = (fate: (passing: Passing) => Fate, name = NAME) => ({
  packets: (seed: number) =>
    play(
      pods('glibc', 6, {
        names: [name],
        lookups: 100,
        everyMs: 130,
        resolvConf: 'nameserver 10.96.0.10\n',
      }),
      fate,
      { seed },
    ),
});

const forgetsAt =
  (...untilMs: number[]) =>
  (cache: number): number =>
    untilMs[cache]!;

/** A cache without the name, which queries it again each time its entry has expired. */
const deniesAnew =
  (ttlMs: number) =>
  (cache: number, atMs: number): number =>
    cache === 0 ? Math.floor(atMs / ttlMs) * ttlMs + ttlMs : -1;

const differ = ['ND8001', 'ND8004'];

export const newNameStories: readonly Story[] = [
  {
    name: 'a new name that three DNS pods forget at different times is reported for one of them',
    code: 'ND8003',
    seen: /10\.244\.[34]\.2 returned NXDOMAIN until 03:07:0[78] with a TTL that counts down \((?:9, )?8, 7, 6, 5(?:, 4)?\), then an address at 03:07:08\. 2 more servers denied it, too, the last one until 03:07:10\.$/,
    without: differ,
    ...asking(byCache(forgetsAt(8000, 8700, 10_900))),
  },
  {
    name: 'a new name that one of three DNS pods has not forgotten when the capture ends',
    code: 'ND8003',
    seen: /10\.244\.5\.2 returned NXDOMAIN until 03:07:1[23] with a TTL that counts down .* still did at the end of the capture, although another server has the name\. 2 more servers denied it, too/,
    without: differ,
    ...asking(byCache(forgetsAt(8000, 8700, 40_000))),
  },
  {
    name: 'a node cache remembers for minutes that a name is missing, and DNS pods have it since the 8th second',
    code: 'ND8003',
    seen: /169\.254\.20\.10 returned NXDOMAIN until .* counts down .* another server has the name/,
    without: differ,
    packets: () => {
      const missing = (ttl: number) => ({
        reply: { rcode: RCODE.NXDOMAIN, authority: [{ ...soa('cluster.local.'), ttl }] },
      });
      const name = `${NAME}.`;
      const asked = Array.from({ length: 40 }, (_, i): Given[] => {
        const pod = {
          atMs: i * 1000,
          name,
          client: '10.244.1.22',
          server: `10.244.${3 + (i % 2)}.2`,
        };
        const node = { atMs: i * 1000 + 500, name, client: '10.244.1.21', server: '169.254.20.10' };
        return [
          { ...pod, ...(i < 8 ? missing(300) : { address: '10.96.200.12', ttl: 30 - (i % 20) }) },
          { ...node, ...missing(300 - i) },
        ];
      });
      return Promise.resolve(given([...others(20), ...asked.flat()]));
    },
  },
  {
    name: 'a node cache remembers for an hour that a name is missing, with the SOA record of then; DNS pods have it throughout',
    code: 'ND8003',
    seen: /169\.254\.20\.10 returned NXDOMAIN until .* counts down .* another server has the name/,
    without: differ,
    packets: () => {
      const zone = soa('cluster.local.');
      const old = { ...zone, data: { ...zone.data, serial: 7 } };
      const asked = Array.from({ length: 20 }, (_, i): Given[] => {
        const pod = { client: '10.244.1.22', server: '10.96.0.10' };
        const node = { client: '10.244.1.21', server: '169.254.20.10' };
        const missing = (soaRecord: DnsRecord) => ({
          reply: { rcode: RCODE.NXDOMAIN, authority: [soaRecord] },
        });
        const both = [pod, node].map((way, nth) => ({
          ...{ atMs: i * 2000 + 50 + nth, name: `no${i}.shop.svc.cluster.local.` },
          ...way,
          ...missing(zone),
        }));
        return [
          ...both,
          {
            atMs: i * 2000 + 20,
            name: 'db.shop.svc.cluster.local.',
            ...node,
            address: '10.96.3.8',
          },
          { atMs: i * 2000, name: `${NAME}.`, ...pod, address: '10.96.200.12' },
          {
            atMs: i * 2000 + 9,
            name: `${NAME}.`,
            ...node,
            ...missing({ ...old, ttl: 3593 - 2 * i }),
          },
        ];
      });
      return Promise.resolve(given([...others(20), ...asked.flat()]));
    },
  },
  {
    name: 'a new name that one of three DNS pods never cached as missing',
    code: 'ND8003',
    without: differ,
    ...asking(byCache(forgetsAt(8000, -1, 8700))),
  },
  {
    name: 'a new name that three DNS pods forget at different times, seen at a client',
    code: 'ND8003',
    seen: /10\.96\.0\.10 returned NXDOMAIN until 03:07:10 with a TTL that counts down .* some of its replies contain an address from 03:07:08 on, because the caches behind it/,
    without: differ,
    ...asking(byCache(forgetsAt(8000, 8700, 10_900), { isSeen: false })),
  },
  {
    name: 'a new name that one of three DNS pods has not forgotten when the capture ends, seen at a client',
    code: 'ND8003',
    without: differ,
    ...asking(byCache(forgetsAt(8000, 8700, 40_000), { isSeen: false })),
  },
  {
    name: 'a new name that one of three DNS pods never cached as missing, seen at a client',
    code: 'ND8003',
    without: differ,
    ...asking(byCache(forgetsAt(8000, -1, 8700), { isSeen: false })),
  },
  ...[5000, 30_000].map((ttlMs): Story => ({
    name: `one of two DNS pods lacks a name, and remembers that for ${ttlMs / 1000} s each time`,
    code: 'ND8001',
    without: ['ND8003'],
    ...asking(byCache(deniesAnew(ttlMs), { count: 2 })),
  })),
  ...[5000, 30_000].map((ttlMs): Story => ({
    name: `one of two DNS pods lacks a name, and remembers that for ${ttlMs / 1000} s each time, seen at a client`,
    code: 'ND8001',
    without: ['ND8003'],
    ...asking(byCache(deniesAnew(ttlMs), { count: 2, isSeen: false })),
  })),
  {
    name: 'autopath does not know a pod yet, on one of two DNS pods, which caches its reply',
    code: 'ND8001',
    without: ['ND8003'],
    packets: (seed) => {
      const cached = byCache(forgetsAt(8000, -1), { count: 2 });
      return play(
        pods('glibc', 6, { names: ['www.example.com'], lookups: 60, everyMs: 220 }),
        (passing) =>
          passing.name === 'www.example.com.'
            ? { addresses: ['192.0.2.10'], tookMs: 2 }
            : passing.name.includes('.shop.svc.')
              ? { ...cached(passing), cname: 'www.example.com.' }
              : { rcode: 3, tookMs: 0.4 },
        { seed },
      );
    },
  },
];
