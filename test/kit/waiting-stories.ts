/** Examples of lookups that wait for something behind the server that the client queries. */
import { FLAG, OPTION } from '../../src/server/wire/iana.ts';
import { answeredWith, type Reply } from './content-stories.ts';
import type { Captured } from './packets.ts';
import { addressRecord } from './packets.ts';
import { healthy, play, type Passing } from './story.ts';
import { asked, corpResolvConf, ends, inOrder, played, pods, type Story } from './story-parts.ts';

const CLIENT = '10.244.1.7';
const isOfCorp = ({ name }: Passing): boolean => name.endsWith('.corp.example.');
const isOutside = ({ name }: Passing): boolean => !name.endsWith('.cluster.local.');

/** Single exchanges every 400 ms with a given kind of reply, alongside healthy pods. */
async function beside(
  seed: number,
  count: number,
  reply: (nth: number) => { name: string; type: string; reply: Reply },
): Promise<Captured[]> {
  const others = await play(pods('glibc', 3, { lookups: 12, from: 40 }), healthy, { seed });
  const own = Array.from({ length: count }, (_, i) => {
    const { name, type, reply: given } = reply(i);
    return answeredWith(i * 400, ends(CLIENT, 20_000 + i), name, i + 1, type, given);
  });
  return inOrder([others, ...own]);
}

const reverse = (nth: number): string => `${(nth % 9) + 1}.1.244.10.in-addr.arpa.`;

export const waitingStories: readonly Story[] = [
  {
    ...played(
      'the server of a search domain denies names after 1.3 s: each external name waits for it',
      'ND2016',
      () => pods('glibc', 3, { lookups: 14, resolvConf: corpResolvConf }),
      (passing) => (isOfCorp(passing) ? { rcode: 3, tookMs: 1300 } : healthy(passing)),
    ),
    seen: /corp\.example/,
    without: ['ND4003'],
  },
  {
    ...played(
      'all external names are slow, not those of a search domain alone',
      'ND4003',
      () => pods('glibc', 3, { lookups: 14, resolvConf: corpResolvConf }),
      (passing) => (isOutside(passing) ? { ...healthy(passing), tookMs: 1300 } : healthy(passing)),
    ),
    without: ['ND2016'],
  },
  {
    name: 'reverse lookups of private addresses are SERVFAIL after four seconds',
    code: 'ND2015',
    without: ['ND4002'],
    packets: (seed) =>
      beside(seed, 20, (nth) => ({
        ...{ name: reverse(nth), type: 'PTR' },
        reply: { rcode: 2, tookMs: 4000 },
      })),
  },
  {
    name: 'the upstream of a DNS pod does not answer reverse lookups of private addresses',
    code: 'ND2015',
    seen: /^The upstream, 192\.0\.2\.53, received \d+ of them and answered none/,
    packets: async (seed) => {
      const others = await play(pods('glibc', 3, { lookups: 12, from: 40 }), healthy, { seed });
      const own = Array.from({ length: 8 }, (_, i) => {
        const failed = { type: 'PTR', rcode: 2, tookMs: 4000 };
        const lost = { type: 'PTR', tookMs: null };
        const up = ends('10.244.3.2', 40_000 + i, '192.0.2.53');
        return [
          ...asked(i * 4500, ends(CLIENT, 20_000 + i, '10.244.3.2'), reverse(i), i + 1, failed),
          ...asked(i * 4500 + 1, up, reverse(i), 500 + i, lost),
          ...asked(i * 4500 + 2001, { ...up, fromPort: 41_000 + i }, reverse(i), 600 + i, lost),
          ...asked(i * 4500 + 20, { ...up, fromPort: 42_000 + i }, `h${i}.example.org.`, 700 + i),
        ];
      });
      return inOrder([others, ...own]);
    },
  },
  {
    name: 'reverse lookups of private addresses are not answered',
    code: 'ND2015',
    without: ['ND3010'],
    packets: async (seed) => {
      const others = await play(pods('glibc', 3, { lookups: 12, from: 40 }), healthy, { seed });
      const own = Array.from({ length: 20 }, (_, i) => [
        ...asked(i * 400, ends(CLIENT, 20_000 + i), reverse(i), i + 1, {
          type: 'PTR',
          tookMs: null,
        }),
        ...asked(i * 400 + 90, ends(CLIENT, 22_000 + i), 'db.shop.svc.cluster.local.', i + 99),
      ]);
      return inOrder([others, ...own]);
    },
  },
  {
    name: 'FORMERR for external names of a client with EDNS: the upstream does not know EDNS',
    code: 'ND4009',
    without: ['ND4002'],
    packets: (seed) =>
      beside(seed, 24, (nth) => {
        const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
        const name = nth % 2 === 0 ? 'db.shop.svc.cluster.local.' : `www${nth % 5}.example.net.`;
        return {
          ...{ name, type: 'A' },
          reply: {
            query: { edns },
            ...(nth % 2 === 0 ? { answer: [addressRecord(name, '10.96.3.7')] } : { rcode: 1 }),
          },
        };
      }),
  },
  {
    name: 'a large answer fails with a large EDNS size, and comes truncated with a small one',
    code: 'ND3012',
    without: ['ND2012', 'ND4002'],
    packets: async (seed) => {
      const name = 'large.example.net.';
      const text = { name, type: 16, class: 1, ttl: 5, data: { strings: ['a'.repeat(250)] } };
      const sized = (udpSize: number): Reply => ({
        query: { edns: { udpSize, version: 0, dnssecOk: false, options: [] } },
      });
      const failing = await beside(seed, 12, () => ({
        ...{ name, type: 'TXT' },
        reply: { ...sized(4096), rcode: 2, tookMs: 4000 },
      }));
      const fine = [900, 3700].map((atMs, i) =>
        answeredWith(atMs, ends(CLIENT, 21_000 + i), name, 90 + i, 'TXT', {
          ...sized(1232),
          flags: FLAG.QR | FLAG.RD | FLAG.RA | FLAG.TC,
        }),
      );
      const whole = answeredWith(4700, ends(CLIENT, 21_009), name, 99, 'TXT', {
        ...sized(4096),
        answer: Array.from({ length: 6 }, () => text),
      });
      return inOrder([failing, ...fine, whole]);
    },
  },
  {
    name: 'an upstream resolves each name slowly once, and the cache has it from then on',
    code: null,
    without: ['ND2012'],
    packets: (seed) => {
      const [pod, upstream] = ['10.244.2.9', '192.0.2.53'];
      const known = new Set<string>();
      return Promise.resolve(
        inOrder(
          Array.from({ length: 300 }, (_, i) => {
            const name = `www${(i * 7 + seed) % 12}.example.com.`;
            const isCold = !known.has(name);
            known.add(name);
            const tookMs = 300 + ((i * 97) % 700);
            const client = ends(CLIENT, 20_000 + i, pod);
            return [
              ...asked(i * 100, client, name, i + 1, { tookMs: isCold ? tookMs + 1 : 0.5 }),
              ...(isCold
                ? asked(i * 100 + 0.3, ends(pod, 40_000 + i, upstream), name, i + 1, { tookMs })
                : []),
              ...asked(i * 100 + 20, client, 'db.shop.svc.cluster.local.', i + 2000),
            ];
          }),
        ),
      );
    },
  },
  {
    name: 'HTTPS queries are not answered, A queries of the same names are',
    code: 'ND3025',
    seen: /HTTPS queries to 10\.96\.0\.10 got no reply/,
    packets: async (seed) => {
      const others = await play(pods('glibc', 3, { lookups: 12, from: 40 }), healthy, { seed });
      const own = Array.from({ length: 30 }, (_, i) => {
        const name = `www${i % 3}.example.net.`;
        return [
          ...asked(i * 300, ends(CLIENT, 20_000 + i), name, i + 1),
          ...asked(i * 300 + 1, ends(CLIENT, 21_000 + i), name, i + 99, {
            type: 'HTTPS',
            tookMs: null,
          }),
        ];
      });
      return inOrder([others, ...own]);
    },
  },
  {
    name: 'names have the address 0.0.0.0, localhost has loopback',
    code: 'ND4043',
    seen: /from 10\.96\.0\.10 contain 0\.0\.0\.0\. They are for telemetry\.example\.net\.$/,
    packets: async (seed) => {
      const others = await play(pods('go', 3, { lookups: 12, from: 40 }), healthy, { seed });
      const own = Array.from({ length: 8 }, (_, i) => [
        ...asked(i * 400, ends(CLIENT, 20_000 + i), 'telemetry.example.net.', i + 1, {
          address: '0.0.0.0',
        }),
        ...asked(i * 400 + 9, ends(CLIENT, 21_000 + i), 'localhost.', i + 50, {
          address: '127.0.0.1',
        }),
      ]);
      return inOrder([others, ...own]);
    },
  },
  {
    name: 'one Service is deleted while its clients ask for it',
    code: 'ND8010',
    without: ['ND4006', 'ND8001', 'ND2008'],
    packets: (seed) =>
      play(
        pods('glibc', 3, { lookups: 24, names: ['db', 'backend', 'www.example.com'] }),
        (passing) =>
          passing.name.startsWith('backend.shop.') && passing.atMs > 8000
            ? { rcode: 3, tookMs: 0.5 }
            : healthy(passing),
        { seed },
      ),
  },
  {
    ...played(
      'one of the DNS pods is dead, and a pod also asks for a misspelled namespace',
      'ND3008',
      () => [
        ...pods('glibc', 3, { lookups: 30 }),
        ...pods('glibc', 1, { from: 50, lookups: 8, everyMs: 3000, names: ['auth.platfrom'] }),
      ],
      (passing) =>
        passing.port % 2 === 0 && passing.atMs > 5000
          ? { lost: true }
          : passing.name.startsWith('auth.platfrom.')
            ? { rcode: 3, tookMs: 0.5 }
            : healthy(passing),
    ),
    also: ['ND2008'],
  },
  {
    name: 'the search list has no svc.cluster.local',
    code: 'ND2017',
    without: ['ND2011', 'ND2014'],
    packets: (seed) =>
      play(
        pods('glibc', 3, {
          lookups: 14,
          names: ['redis.cache', 'db.cache', 'web.kube-system', 'db', 'www.example.com'],
          resolvConf:
            'nameserver 10.96.0.10\nsearch shop.svc.cluster.local cluster.local\noptions ndots:5\n',
        }),
        healthy,
        { seed },
      ),
  },
  {
    name: 'clean: a DNS pod gets a part of the queries of each lookup',
    code: null,
    without: ['ND2017'],
    packets: async (seed) => {
      const whole = await play(
        pods('glibc', 3, { lookups: 40, everyMs: 300, names: ['www.test', 'api.test', 'db.test'] }),
        (passing) => (passing.name.endsWith('.test.') ? { rcode: 3 } : healthy(passing)),
        { seed },
      );
      // Each socket is translated to one of two pods. Replies are identified by their destination port.
      const isOurs = ({ bytes }: Captured): boolean => {
        const at = (bytes[30]! & 0x80) === 0 ? 20 : 22;
        return (((bytes[at]! << 8) | bytes[at + 1]!) * 2_654_435_761) % 65_536 < 32_768;
      };
      return whole.filter(isOurs);
    },
  },
  {
    ...played(
      'the servers of one zone refuse, other external names are answered',
      'ND4010',
      () =>
        pods('glibc', 4, {
          lookups: 20,
          names: [
            'api.partner.example',
            'www.example.com',
            'api.example.org',
            'mail.example.com',
            'db',
          ],
        }),
      (passing) =>
        /^(?:\w+\.)?partner\.example\.$/.test(passing.name)
          ? { rcode: 5, tookMs: 5 }
          : healthy(passing),
    ),
    seen: /in api\.partner\.example\., while other external names are answered/,
  },
  {
    ...played(
      'the second server of resolv.conf refuses everything, the first answers',
      'ND4010',
      () =>
        pods('glibc', 4, {
          lookups: 16,
          resolvConf:
            'nameserver 10.96.0.10\nnameserver 10.0.0.9\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5 rotate\n',
        }),
      (passing) => (passing.server === '10.0.0.9' ? { rcode: 5, tookMs: 1 } : healthy(passing)),
    ),
    seen: /10\.0\.0\.9 refuses \(nearly\) every query, while 10\.96\.0\.10/,
  },
  {
    name: 'an upstream refuses names that it says are blocked, and nothing else is refused',
    code: 'ND4036',
    without: ['ND4010'],
    packets: async (seed) => {
      const others = await play(pods('glibc', 3, { lookups: 12, from: 40 }), healthy, { seed });
      const [pod, upstream] = ['10.244.2.9', '192.0.2.53'];
      const option = { code: OPTION.EDE, data: Uint8Array.from([0, 15]) };
      const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [option] };
      const own = Array.from({ length: 12 }, (_, i) => {
        const name = `ads${i % 3}.example.net.`;
        return [
          ...answeredWith(i * 400, ends(CLIENT, 20_000 + i, pod), name, i + 1, 'A', {
            ...{ rcode: 5, tookMs: 9 },
          }),
          ...answeredWith(i * 400 + 1, ends(pod, 30_000 + i, upstream), name, i + 50, 'A', {
            ...{ rcode: 5, edns },
          }),
          ...asked(i * 400 + 90, ends(CLIENT, 22_000 + i, pod), 'www.example.org.', i + 99),
          ...asked(i * 400 + 91, ends(pod, 32_000 + i, upstream), 'www.example.org.', i + 150),
        ];
      });
      return inOrder([others, ...own]);
    },
  },
];
