/** Examples of replies that arrive promptly but are wrong or of no use to the client. */
import { FLAG, OPTION, TYPE } from '../../src/server/wire/iana.ts';
import type { DnsRecord, Message } from '../../src/server/wire/message.ts';
import type { Captured } from './packets.ts';
import {
  addressRecord,
  back,
  checksummed,
  dnsMessage,
  icmpError,
  udpPacket,
  type Ends,
} from './packets.ts';
import { healthy, ownIpId, play, type Fate, type Passing } from './story.ts';
import {
  asked,
  at,
  ends,
  everybody,
  inOrder,
  names,
  played,
  pods,
  type Story,
} from './story-parts.ts';

const SERVICE = '10.96.0.10';
const UPSTREAM = '192.0.2.53';

/** The parts of a reply, apart from its question. */
export type Reply = Partial<Message> & {
  /** The reply's source port. */
  readonly fromPort?: number;
  /** A different name in the reply's question. */
  readonly about?: string;
  /** The number of bytes left after truncation. */
  readonly cutTo?: number;
  readonly query?: Partial<Message>;
  readonly tookMs?: number;
  /** The reply's UDP checksum: wrong, correct, or left to the network card. If omitted, there is none. */
  readonly checksum?: 'wrong' | 'whole' | 'partial';
};

/** Adds such a checksum to the packet. */
function summed(packet: Uint8Array, how: Reply['checksum']): Uint8Array {
  if (how === undefined) return packet;
  const made = checksummed(packet, how === 'partial' ? 'partial' : 'whole');
  if (how === 'wrong') made[made.length - 1]! ^= 0x55;
  return made;
}

export function answeredWith(
  atMs: number,
  way: Ends,
  name: string,
  id: number,
  type: string,
  reply: Reply,
): Captured[] {
  const {
    cutTo = Infinity,
    query = {},
    tookMs = 0.7,
    about = name,
    checksum,
    fromPort = 53,
    ...rest
  } = reply;
  const bytes = dnsMessage(about, type, { id, reply: true, ...rest }).subarray(0, cutTo);
  const packet = udpPacket({ ...back(way), fromPort }, bytes, (id % 0xfffe) + 1);
  return [
    at(atMs, udpPacket(way, dnsMessage(name, type, { id, ...query }), ownIpId(way.fromPort, id))),
    at(atMs + tookMs, summed(packet, checksum)),
  ];
}

/** Lookups by some pods for both address families, each with a given reply. */
function lookups(
  count: number,
  reply: (type: 'A' | 'AAAA', nth: number, name: string) => Reply,
  more: { readonly name?: string; readonly everyMs?: number; readonly again?: number } = {},
): Captured[] {
  const { name = 'shop.example.net.', everyMs = 400, again = 0 } = more;
  return inOrder(
    Array.from({ length: count }, (_, i) =>
      (['A', 'AAAA'] as const).flatMap((type, half) => {
        const way = ends(`10.244.1.${10 + (i % 3)}`, 20_000 + 7 * i, SERVICE);
        const id = ((i * 2 + half) * 2713 + 11) & 0xffff;
        return [0, ...Array.from({ length: again }, (__, nth) => 5000 * (nth + 1))].flatMap((ms) =>
          answeredWith(i * everyMs + half * 0.05 + ms, way, name, id, type, reply(type, i, name)),
        );
      }),
    ),
  );
}

export const soa = (zone: string): DnsRecord => ({
  name: zone,
  type: TYPE.SOA,
  class: 1,
  ttl: 30,
  data: {
    ...{ mname: `ns.${zone}`, rname: `host.${zone}`, serial: 1, refresh: 7200 },
    ...{ retry: 1800, expire: 86_400, minimum: 30 },
  },
});
export const alias = (name: string, target: string): DnsRecord => ({
  ...{ name, type: TYPE.CNAME, class: 1, ttl: 30, data: { target } },
});
const nameServer = (zone: string): DnsRecord => ({
  ...{ name: zone, type: TYPE.NS, class: 1, ttl: 30, data: { target: `ns1.${zone}` } },
});
/** An address in the requested family. */
const address = (name: string, type: 'A' | 'AAAA', nth = 1): DnsRecord =>
  addressRecord(name, type === 'A' ? `192.0.2.${nth}` : `2001:db8::${nth}`);
const ednsWith = (code: number, data: readonly number[]): Message['edns'] => ({
  ...{ udpSize: 1232, version: 0, dnssecOk: false },
  options: [{ code, data: Uint8Array.from(data) }],
});
/** An Extended DNS Error (RFC 8914). */
const reason = (code: number, text = ''): Message['edns'] =>
  ednsWith(OPTION.EDE, [code >> 8, code & 255, ...Buffer.from(text)]);

/** Lookups of healthy names at the same time. */
const besides = (count: number, everyMs = 400): Captured[] =>
  inOrder(
    Array.from({ length: count }, (_, i) =>
      ['A', 'AAAA']
        .map((type, half) =>
          asked(
            i * everyMs + 100 + half * 0.04,
            ends(`10.244.1.${10 + (i % 3)}`, 40_000 + 3 * i, SERVICE),
            i % 2 === 0 ? 'api.shop.svc.cluster.local.' : `${names[i % 7]!}.`,
            30_000 + 2 * i + half,
            { type },
          ),
        )
        .flat(),
    ),
  );

const given = (
  name: string,
  code: string | null,
  packets: (seed: number) => readonly Captured[],
  more: Partial<Story> = {},
): Story => ({ name, code, ...more, packets: (seed) => Promise.resolve(packets(seed)) });

/** One of the service's pods, picked per socket. */
const podOf = ({ port, client }: Passing, count: number): number =>
  ((port * 7 + client.length) % count) + 1;

/** One of three DNS pods returns a different address for `db`. */
function stale(passing: Passing): Fate {
  const pod = podOf(passing, 3);
  const fate = { ...healthy(passing), behind: `10.244.9.${pod}` };
  return pod === 2 && passing.name.startsWith('db.shop.') && passing.type === 'A'
    ? { ...fate, addresses: ['10.96.3.99'] }
    : fate;
}

const missingNames = ['no-such-service', 'printer.lan', 'db.staging.example', 'mail.old.example'];
const westResolvConf =
  'nameserver 10.96.0.10\nsearch shop.svc.k8s.corp svc.k8s.corp k8s.corp\noptions ndots:5\n';
const oneDotResolvConf =
  'nameserver 10.96.0.10\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:1\n';

/** Replies to `slow` lookups of `reports.example.com` arrive after the client has closed its socket. */
function givenUp(count: number): Captured[] {
  return inOrder([
    besides(count, 3000),
    ...Array.from({ length: count }, (_, i) =>
      (['A', 'AAAA'] as const).flatMap((type, half) => {
        const way = ends('10.244.1.11', 50_000 + 2 * i, SERVICE);
        const atMs = i * 3000 + 400 + half * 0.1;
        const more = { tookMs: 1800, answer: [address('reports.example.com.', type)] };
        const both = answeredWith(
          atMs,
          way,
          'reports.example.com.',
          900 + 2 * i + half,
          type,
          more,
        );
        const icmp = icmpError('10.244.1.11', both[1]!.bytes, 3, 3, SERVICE);
        return [...both, at(atMs + 1800.1, icmp)];
      }),
    ),
  ]);
}

/** A service is an alias for an external name that no server answers. */
function deadTarget(hasAlias: boolean, isAtPod: boolean): Captured[] {
  const name = 'legacy.shop.svc.cluster.local.';
  return inOrder([
    besides(12, 900),
    ...Array.from({ length: 8 }, (_, i) =>
      (['A', 'AAAA'] as const).flatMap((type, half) => {
        const way = ends(`10.244.1.${10 + (i % 3)}`, 51_000 + 2 * i, SERVICE);
        const atMs = i * 1200 + half * 0.1;
        const answer = hasAlias ? [alias(name, 'db.partner.example.')] : [];
        const failure = { rcode: 2, tookMs: 4000, answer };
        const behind = ends('10.244.9.1', 52_000 + 2 * i + half, UPSTREAM);
        return [
          ...answeredWith(atMs, way, name, 900 + 2 * i + half, type, failure),
          ...(isAtPod
            ? asked(atMs + 1, behind, 'db.partner.example.', 77 + i * 2 + half, {
                type,
                tookMs: null,
              })
            : []),
        ];
      }),
    ),
    ...(isAtPod
      ? Array.from({ length: 10 }, (_, i) =>
          asked(
            i * 900,
            ends('10.244.9.1', 53_000 + i, '192.0.2.54'),
            `${names[i % 7]!}.`,
            500 + i,
          ),
        )
      : []),
  ]);
}

/** There are two versions of a zone. Pods query the version without the name, and a node queries the other. */
function splitZone(): Captured[] {
  const denied = { rcode: 3, authority: [soa('example.com.')] };
  return inOrder(
    Array.from({ length: 10 }, (_, i) => [
      ...answeredWith(
        i * 500,
        ends('10.244.1.10', 20_000 + i),
        'portal.example.com.',
        i,
        'A',
        denied,
      ),
      ...asked(i * 500 + 50, ends('10.244.1.10', 21_000 + i), 'www.example.com.', 100 + i),
      ...asked(
        i * 500 + 90,
        ends('10.0.0.7', 22_000 + i, UPSTREAM),
        'portal.example.com.',
        200 + i,
      ),
    ]),
  );
}

const truncatedWay: readonly DnsRecord[] = Array.from({ length: 40 }, (_, i) =>
  addressRecord('shop.example.net.', `192.0.2.${i + 1}`),
);

export const contentStories: readonly Story[] = [
  given(
    'an acl refuses all queries of one client',
    'ND4010',
    () =>
      inOrder([
        besides(20),
        ...Array.from({ length: 12 }, (_, i) =>
          answeredWith(
            i * 300,
            ends('10.244.1.99', 23_000 + i, SERVICE),
            `${names[i % 7]!}.`,
            600 + i,
            'A',
            { rcode: 5, edns: reason(15) },
          ),
        ),
      ]),
    { without: ['ND4036'], seen: /All queries from 10\.244\.1\.99 are refused/ },
  ),
  given(
    'an acl blocks all queries of one client, and there are no others in the capture',
    'ND4010',
    () =>
      inOrder(
        Array.from({ length: 12 }, (_, i) =>
          answeredWith(
            i * 300,
            ends('10.244.1.99', 23_000 + i, SERVICE),
            `${names[i % 7]!}.`,
            600 + i,
            'A',
            { rcode: 5, edns: reason(18) },
          ),
        ),
      ),
    { without: ['ND4036'], seen: /All queries from 10\.244\.1\.99 are refused/ },
  ),
  given(
    'a headless service has no ready endpoint: its name exists without an address',
    'ND8007',
    () =>
      inOrder([
        besides(10),
        lookups(8, () => ({ authority: [soa('cluster.local.')] }), {
          name: 'kafka.shop.svc.cluster.local.',
        }),
      ]),
    { seen: /kafka\.shop\.svc\.cluster\.local\. A and AAAA \(8 lookups\)/ },
  ),
  given(
    'clean: names with addresses of one family only',
    null,
    () =>
      inOrder([
        besides(10),
        lookups(8, (type, _, name) =>
          type === 'AAAA'
            ? { answer: [address(name, type)] }
            : { authority: [soa('example.net.')] },
        ),
      ]),
    { without: ['ND8007'] },
  ),
  given('two aliases point at each other, and each reply has one of them', 'ND3041', () =>
    inOrder([
      besides(10),
      ...Array.from({ length: 12 }, (_, i) => {
        const [name, target] =
          i % 2 === 0 ? ['a.example.net.', 'b.example.net.'] : ['b.example.net.', 'a.example.net.'];
        const way = ends('10.244.1.10', 23_000 + i, SERVICE);
        return answeredWith(i * 300, way, name, 600 + i, 'A', { answer: [alias(name, target)] });
      }),
    ]),
  ),
  given(
    'two aliases point at each other',
    'ND3041',
    () =>
      inOrder([
        besides(10),
        lookups(8, (_, __, name) => ({
          answer: [alias(name, 'b.example.net.'), alias('b.example.net.', name)],
        })),
      ]),
    { without: ['ND3035'] },
  ),
  given('a firewall cuts replies to 512 bytes and does not set TC', 'ND3030', () =>
    inOrder([besides(10), lookups(8, () => ({ answer: [...truncatedWay], cutTo: 512 }))]),
  ),
  given('clean: large replies are cut with TC', null, () =>
    inOrder([
      besides(10),
      lookups(8, () => ({ flags: 0x8180 | FLAG.TC, answer: [...truncatedWay], cutTo: 512 })),
    ]),
  ),
  given('a cache returns the cookie of the first client, and others retry', 'ND3031', () =>
    inOrder([
      besides(10),
      lookups(
        9,
        (type, nth, name) => ({
          query: { edns: ednsWith(OPTION.COOKIE, [nth, 2, 3, 4, 5, 6, 7, 8]) },
          edns: ednsWith(OPTION.COOKIE, [99, 2, 3, 4, 5, 6, 7, 8]),
          answer: [address(name, type)],
        }),
        { again: 1 },
      ),
    ]),
  ),
  given('clean: servers return the cookies of their clients, followed by their own', null, () =>
    inOrder([
      besides(10),
      lookups(9, (type, nth, name) => ({
        query: { edns: ednsWith(OPTION.COOKIE, [nth, 2, 3, 4, 5, 6, 7, 8]) },
        edns: ednsWith(OPTION.COOKIE, [nth, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9]),
        answer: [address(name, type)],
      })),
    ]),
  ),
  given('a rewrite does not restore the names of answers', 'ND3032', () =>
    inOrder([
      besides(10),
      lookups(8, (type) => ({ answer: [address('www.internal.example.', type)] })),
    ]),
  ),
  given('a server shuffles aliases after their addresses', 'ND3033', () =>
    inOrder([
      besides(10),
      lookups(8, (type, _, name) => ({
        answer: [address('edge.example.net.', type), alias(name, 'edge.example.net.')],
      })),
    ]),
  ),
  given('clean: aliases of aliases, followed by addresses', null, () =>
    inOrder([
      besides(10),
      lookups(8, (type, nth, name) => ({
        answer: [
          alias(name, 'b.example.net.'),
          alias('b.example.net.', 'c.example.net.'),
          address('c.example.net.', type, nth + 1),
        ],
      })),
    ]),
  ),
  given('a proxy does not restore the id of the query', 'ND3039', () =>
    inOrder([
      besides(40),
      lookups(8, (type, nth, name) => ({ id: 7 + nth, answer: [address(name, type)] }), {
        again: 1,
      }),
    ]),
  ),
  given('a rewrite does not restore the question', 'ND3039', () =>
    inOrder([
      besides(40),
      lookups(
        8,
        (type) => ({ about: 'www.other.example.', answer: [address('www.other.example.', type)] }),
        { again: 1 },
      ),
    ]),
  ),
  given('a server sends queries back without the flag of a reply', 'ND3039', () =>
    inOrder([besides(40), lookups(8, () => ({ flags: 0x0100 }), { again: 1 })]),
  ),
  given('clean: an attacker guesses ids, and the replies come', null, () =>
    inOrder([
      besides(40),
      lookups(8, (type, nth, name) => ({ id: 7 + nth, answer: [address(name, type)] })).filter(
        (_, i) => i % 2 === 1,
      ),
      lookups(8, (type, _, name) => ({ answer: [address(name, type)], tookMs: 3 })),
    ]),
  ),
  given('replies are damaged on their way, and their clients retry', 'ND3040', () =>
    inOrder([
      besides(40),
      lookups(8, (type, _, name) => ({ answer: [address(name, type)], checksum: 'wrong' }), {
        again: 1,
      }),
    ]),
  ),
  ...(['partial', 'whole', 'wrong'] as const).map((checksum) =>
    given(`clean: replies have checksums (${checksum}), and their clients use them`, null, () =>
      inOrder([
        besides(40),
        lookups(8, (type, _, name) => ({ answer: [address(name, type)], checksum })),
      ]),
    ),
  ),
  given(
    'replies come from another port than the queried one',
    'ND3016',
    () =>
      inOrder([
        besides(40),
        lookups(8, (type, _, name) => ({ answer: [address(name, type)], fromPort: 1053 }), {
          again: 1,
        }),
      ]),
    { seen: /answered from 10\.96\.0\.10 port 1053, a different port/ },
  ),
  given(
    'an internal version of a zone lacks a name, and no client uses the public one',
    'ND4034',
    () =>
      inOrder([
        ...Array.from({ length: 10 }, (_, i) => [
          ...answeredWith(i * 500, ends('10.244.1.10', 20_000 + i), 'portal.example.com.', i, 'A', {
            rcode: 3,
            authority: [soa('example.com.')],
          }),
          ...asked(i * 500 + 50, ends('10.244.1.10', 21_000 + i), 'wiki.example.com.', 100 + i, {
            address: '10.20.0.5',
          }),
        ]),
      ]),
  ),
  given('answers are of class CH', 'ND3034', () =>
    inOrder([
      besides(10),
      lookups(8, (type, _, name) => ({ answer: [{ ...address(name, type), class: 3 }] })),
    ]),
  ),
  given('answers occasionally end in an alias without an address', 'ND3035', () =>
    inOrder([
      besides(10),
      lookups(12, (type, nth, name) => ({
        answer: [
          alias(name, 'edge.example.net.'),
          ...(type === 'A' && nth % 3 === 0 ? [address('edge.example.net.', type)] : []),
        ],
      })),
    ]),
  ),
  given('clean: the target of an alias has no IPv6 address, according to its zone', null, () =>
    inOrder([
      besides(10),
      lookups(12, (type, _, name) => ({
        answer: [
          alias(name, 'edge.example.net.'),
          ...(type === 'A' ? [address('edge.example.net.', type)] : []),
        ],
        authority: type === 'A' ? [] : [soa('example.net.')],
      })),
    ]),
  ),
  given('a server without recursion refers to the servers of the zone', 'ND3036', () =>
    inOrder([
      besides(10),
      lookups(8, () => ({ flags: 0x8000, authority: [nameServer('example.com.')] })),
    ]),
  ),
  given('a name is an alias of a name that does not exist', 'ND4032', () =>
    inOrder([
      besides(10),
      lookups(8, (_, __, name) => ({
        rcode: 3,
        answer: [alias(name, 'd1.cloud.example.')],
        authority: [soa('cloud.example.')],
      })),
    ]),
  ),
  given(
    'signatures of a zone have expired, according to its resolver',
    'ND4035',
    () =>
      inOrder([
        besides(20),
        lookups(8, () => ({ rcode: 2, edns: reason(7, 'signature expired') })),
      ]),
    { seen: /7 \(Signature Expired\): "signature expired"/ },
  ),
  given(
    'a resolver blocks a name',
    'ND4036',
    () => inOrder([besides(20), lookups(8, () => ({ rcode: 3, edns: reason(15, 'malware') }))]),
    { seen: /15 \(Blocked\): "malware"/ },
  ),
  given(
    'a resolver cannot reach the servers of a zone, and reports that',
    'ND4037',
    () => inOrder([besides(20), lookups(8, () => ({ rcode: 2, edns: reason(22) }))]),
    { seen: /22 \(No Reachable Authority\)/ },
  ),
  given('a cache answers from expired records, and reports that', 'ND4038', () =>
    inOrder([
      besides(20),
      lookups(8, (type, _, name) => ({ answer: [address(name, type)], edns: reason(3) })),
    ]),
  ),
  played(
    'one of three DNS pods gives the old address of a service',
    'ND8005',
    () => everybody(60),
    stale,
  ),
  {
    name: 'one of three DNS pods gives the old address of a service, seen from a client',
    code: 'ND8005',
    packets: (seed) =>
      play(
        everybody(60),
        (passing) => {
          const { behind: _, ...fate } = stale(passing);
          return fate;
        },
        { seed },
      ),
  },
  played(
    'clean: a service gets another address, and each DNS pod knows it at another time',
    null,
    () => everybody(60),
    (passing) => {
      const pod = podOf(passing, 3);
      const fate = { ...healthy(passing), behind: `10.244.9.${pod}` };
      return passing.name.startsWith('db.shop.') && passing.type === 'A'
        ? { ...fate, addresses: [passing.atMs < 12_000 + pod * 1000 ? '10.96.3.7' : '10.96.3.8'] }
        : fate;
    },
  ),
  played(
    'clean: the addresses of an external name rotate, and each DNS pod caches others',
    null,
    () => everybody(60),
    (passing) => {
      const fate = { ...healthy(passing), behind: `10.244.9.${podOf(passing, 3)}` };
      const nth = (Math.floor(passing.atMs / 5000) + podOf(passing, 3)) % 4;
      return passing.name === 'www.example.com.' && passing.type === 'A'
        ? { ...fate, addresses: [`203.0.113.${nth}`, `203.0.113.${nth + 8}`] }
        : fate;
    },
  ),
  played(
    'clean: a service is an alias of an external name, for which each DNS pod has other addresses',
    null,
    () => everybody(60),
    (passing) => {
      const fate = { ...healthy(passing), behind: `10.244.9.${podOf(passing, 3)}` };
      return passing.name.startsWith('db.shop.') && passing.type === 'A'
        ? { ...fate, cname: 'db.example.net.', addresses: [`203.0.113.${podOf(passing, 3)}`] }
        : fate;
    },
  ),
  played(
    'clean: AAAA gets an empty answer for every name',
    null,
    () => everybody(20),
    (passing) => (passing.type === 'AAAA' ? { addresses: [], tookMs: 0.4 } : healthy(passing)),
  ),
  played(
    'pods of one node search the domain of another cluster, others do not',
    'ND2010',
    () => [
      ...pods('glibc', 2, { lookups: 14, resolvConf: westResolvConf, from: 60 }),
      ...everybody(14),
    ],
    healthy,
  ),
  played(
    'a pod searches a cluster domain that no server serves, and nothing is compared with it',
    'ND2010',
    () => pods('glibc', 1, { lookups: 20, resolvConf: westResolvConf }),
    healthy,
  ),
  played(
    'Alpine pods with ndots:1 ask for services with a dot as written, and stop',
    'ND2011',
    () => [
      ...pods('musl', 2, {
        lookups: 12,
        resolvConf: oneDotResolvConf,
        names: ['redis.cache', 'metrics.kube-system.svc', 'www.example.com'],
        from: 60,
      }),
      ...everybody(10),
    ],
    healthy,
  ),
  given('a client gives up after a second, and the reply takes 1.8 s', 'ND2012', () => givenUp(8)),
  given('the target of an ExternalName service does not answer', 'ND4031', () =>
    deadTarget(true, false),
  ),
  given(
    'the target of an ExternalName service does not answer, seen at the DNS pod',
    'ND4031',
    () => deadTarget(true, true),
  ),
  given('only one service fails late, and its replies have no reason', 'ND4031', () =>
    deadTarget(false, false),
  ),
  given('a zone has two versions, and pods use the one without the name', 'ND4034', splitZone),
  played(
    'a resolver gives one address for names that do not exist',
    'ND4033',
    () => [
      ...pods('glibc', 2, { lookups: 12, names: missingNames, from: 60 }),
      ...pods('go', 2, { lookups: 12, names: missingNames, from: 70 }),
      ...everybody(10),
    ],
    (passing) => {
      const fate = healthy(passing);
      const isOutside = !passing.name.endsWith('.cluster.local.');
      return isOutside && fate.rcode === 3
        ? { addresses: passing.type === 'A' ? ['203.0.113.254'] : [], tookMs: 9 }
        : fate;
    },
  ),
  played(
    'A of a search path name is always missing, and AAAA has an alias',
    'ND8006',
    () => everybody(10),
    (passing) => {
      if (passing.name !== 'www.example.com.shop.svc.cluster.local.') return healthy(passing);
      return passing.type === 'A'
        ? { rcode: 3, tookMs: 0.5 }
        : { addresses: ['2001:db8::1'], cname: 'www.example.com.', tookMs: 0.5 };
    },
  ),
];
