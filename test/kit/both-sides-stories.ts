/**
 * Examples that show both sides of a server: the queries it gets from clients, and its own queries to other servers.
 */
import { dnsMessage, icmpError, TCP, tcpPacket, udpPacket, type Captured } from './packets.ts';
import { healthy, play, podResolvConf, type Fate, type Passing } from './story.ts';
import { asked, at, ends, inOrder, names, pods, type Story } from './story-parts.ts';

/** The pod behind the service address, and the source of its own queries. */
const POD = '10.244.3.2';
const UPSTREAM = '192.0.2.53';

/** The names are new, so caches do not help. */
const fresh = (i: number): string => `h${i}.example.com.`;

/** A DNS pod's queries to its upstream, sent at a fixed interval in milliseconds. */
const toUpstream = (
  count: number,
  everyMs: number,
  tookMs: (i: number) => number | null,
): Captured[][] =>
  Array.from({ length: count }, (_, i) =>
    asked(i * everyMs, ends(POD, 31_000 + i, UPSTREAM), fresh(i), 300 + i, { tookMs: tookMs(i) }),
  );

/**
 * A DNS pod with a time-out that is too short. For some seconds, it discards replies from a slow upstream and passes
 * them on late afterwards.
 */
const impatient = ({ atMs, name }: Passing): Fate =>
  atMs > 4000 && atMs < 9000 && !name.endsWith('.cluster.local.')
    ? { lost: true, behind: POD }
    : { addresses: ['192.0.2.10'], tookMs: name.startsWith('h') ? 850 : 0.4, behind: POD };

/** A query to the service address, together with its translated form. */
const taken = (
  atMs: number,
  client: string,
  port: number,
  pod: string,
  name: string,
  id: number,
  isAnswered: boolean,
): Captured[] => [
  ...asked(atMs, ends(client, port), name, id, { tookMs: isAnswered ? 0.6 : null }),
  ...asked(atMs + 0.02, ends(client, port, pod), name, id, { tookMs: isAnswered ? 0.5 : null }),
];

/** Pods with the same resolver, whose glibc may use EDNS. */
const twoOf = (resolver: string, from: number, options = ''): ReturnType<typeof pods> =>
  pods(resolver, 1, {
    from,
    lookups: 9,
    everyMs: 3100,
    resolvConf: podResolvConf.replace('ndots:5', `ndots:2 ${options}`),
  });

/**
 * One pod captured at its own end, and others at the DNS pods, where the service address has already been translated.
 */
const behindTranslation = (seed: number, isCut: boolean): Promise<Captured[]> =>
  play(
    [
      ...pods('musl', 1, { from: 20, lookups: 5, everyMs: 2600 }),
      ...[31, 33, 35].flatMap((from, i) =>
        pods((['musl', 'glibc', 'go'] as const)[i]!, 1, {
          from,
          lookups: 14,
          resolvConf: podResolvConf.replace('10.96.0.10', `10.244.3.${2 + (i % 2)}`),
        }),
      ),
    ],
    (passing) => (isCut && passing.client === '10.244.1.20' ? { lost: true } : healthy(passing)),
    { seed },
  );

export const bothSidesStories: readonly Story[] = [
  {
    name: 'a node has no rule for the address of the DNS service: queries leave it untranslated',
    code: 'ND3005',
    seen: /^10 of them left the node, from 172\.18\.0\.2, still addressed to 10\.96\.0\.10/,
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 12 }, (_, i) => {
            const name = `db${i % 3}.shop.svc.cluster.local.`;
            return ['10.244.1.26', '172.18.0.2'].flatMap((from, hop) =>
              asked(i * 2500 + hop * 0.1, ends(from, 30_000 + i), name, 60 + i, {
                tookMs: null,
              }).map((packet) => ({ ...packet, port: hop })),
            );
          }),
        ),
      ),
  },
  {
    name: 'a DNS pod is silent for seconds while it queries its upstream, whose replies are late',
    code: 'ND4003',
    without: ['ND3007'],
    packets: async (seed) =>
      inOrder([
        await play(
          pods('go', 6, {
            lookups: 30,
            everyMs: 600,
            resolvConf: 'nameserver 10.96.0.10\noptions ndots:1\n',
            names: Array.from({ length: 40 }, (_, i) =>
              i % 9 === 0 ? 'db.shop.svc.cluster.local' : `h${i * 5}.example.com`,
            ),
          }),
          impatient,
          { seed },
        ),
        ...toUpstream(200, 90, () => 800),
      ]),
  },
  {
    name: 'an egress rule drops the queries of one pod, seen at its interface; those of others are seen at the DNS pods',
    code: 'ND3004',
    without: ['ND3005', 'ND3018'],
    packets: (seed) => behindTranslation(seed, true),
  },
  {
    name: 'clean: one pod is seen at its own interface, others at the DNS pods',
    code: null,
    packets: (seed) => behindTranslation(seed, false),
  },
  {
    name: 'a firewall drops EDNS: a pod of Go and one of glibc with EDNS get nothing, others of glibc and musl everything',
    code: 'ND4009',
    without: ['ND3004'],
    packets: (seed) =>
      play(
        [
          ...twoOf('glibc', 1),
          ...twoOf('musl', 2),
          ...twoOf('go', 3),
          ...twoOf('glibc', 4, 'edns0'),
        ],
        (passing) =>
          ['10.244.1.3', '10.244.1.4'].includes(passing.client) ? { lost: true } : healthy(passing),
        { seed },
      ),
  },
  {
    name: 'a firewall drops EDNS: one program falls back and proves it, another uses nothing else',
    code: 'ND4009',
    without: ['ND3004'],
    packets: async (seed) => {
      const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
      const clients = [...pods('musl', 3), ...twoOf('glibc', 8, 'edns0')];
      const falls = Array.from({ length: 14 }, (_, i): Captured[] => {
        const name = `${names[i % 2]!}.`;
        const query = dnsMessage(name, 'A', { id: 900 + i, edns });
        const first = at(i * 500, udpPacket(ends('10.244.1.77', 33_000 + i), query, 900 + i));
        return [first, ...asked(i * 500 + 400, ends('10.244.1.77', 34_000 + i), name, 950 + i)];
      });
      const isCut = ({ client }: Passing): boolean => client === '10.244.1.8';
      const rest = await play(
        clients,
        (passing) => (isCut(passing) ? { lost: true } : healthy(passing)),
        { seed },
      );
      return inOrder([rest, ...falls]);
    },
  },
  {
    name: 'an old server does not understand EDNS, and answers FORMERR',
    code: 'ND4009',
    without: ['ND4002'],
    packets: (seed) =>
      play(
        [...pods('musl', 2), ...twoOf('go', 8), ...twoOf('glibc', 9, 'edns0')],
        (passing) =>
          ['10.244.1.8', '10.244.1.9'].includes(passing.client)
            ? { rcode: 1, tookMs: 0.4 }
            : healthy(passing),
        { seed },
      ),
  },
  {
    name: 'an old load balancer answers AAAA with "not implemented" (NOTIMP)',
    code: 'ND8002',
    without: ['ND4002', 'ND2003'],
    packets: (seed) =>
      play(
        [...pods('glibc', 2), ...pods('go', 2, { from: 40 })],
        (passing) => (passing.type === 'AAAA' ? { rcode: 4, tookMs: 0.4 } : healthy(passing)),
        { seed },
      ),
  },
  {
    name: 'a firewall drops a zone, and one program after another blocks in it until none sends other queries',
    code: 'ND3010',
    without: ['ND3007'],
    packets: () =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 100 }, (_, i) =>
            asked(i * 90, ends('10.244.1.7', 31_000 + i), `${names[i % 7]!}.`, 300 + i),
          ),
          // Six programs query it at different times, and each waits five seconds twice.
          ...[0, 1, 2, 3, 4, 5].flatMap((program) =>
            [0, 5000, 10_000, 15_000].flatMap((afterMs, step) =>
              ['A', 'AAAA'].map((type, i) =>
                asked(
                  5000 + program * 750 + afterMs,
                  ends('10.244.1.7', 41_000 + program * 10 + (step >> 1)),
                  step < 2 ? 'www.dead.example.' : 'www.dead.example.shop.svc.cluster.local.',
                  700 + program * 10 + 2 * (step >> 1) + i,
                  { type, tookMs: null },
                ),
              ),
            ),
          ),
          ...Array.from({ length: 20 }, (_, i) =>
            asked(25_500 + i * 90, ends('10.244.1.7', 51_000 + i), `${names[i % 7]!}.`, 500 + i),
          ),
        ]),
      ),
  },
  {
    name: 'the cache of the node uses only TCP to the DNS pods, which a policy lacks: all of its queries fail after a while',
    code: 'ND3011',
    without: ['ND4002', 'ND4003'],
    packets: async (seed) =>
      inOrder([
        await play(
          pods('glibc', 3, {
            lookups: 6,
            everyMs: 7000,
            resolvConf: podResolvConf.replace('10.96.0.10', '169.254.20.10'),
          }),
          () => ({ rcode: 2, tookMs: 1600 }),
          { seed },
        ),
        ...Array.from({ length: 12 }, (_, i): Captured[] => {
          const syn = tcpPacket(
            ends('10.0.7.1', 39_000 + i, `10.244.${3 + (i % 2)}.2`),
            100,
            TCP.SYN,
          );
          return [0, 1000, 3000].map((afterMs) => at(100 + i * 3000 + afterMs, syn));
        }),
      ]),
  },
  {
    name: 'a DNS pod uses only TCP to its upstream, which stops getting through: it answers cached names, and no new ones',
    code: 'ND3011',
    without: ['ND3010'],
    packets: () =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 300 }, (_, i) =>
            asked(i * 90, ends('10.244.1.7', 31_000 + i), `${names[i % 7]!}.`, 300 + i),
          ),
          ...Array.from({ length: 90 }, (_, i) =>
            asked(
              i * 300 + 40,
              ends('10.244.1.7', 51_000 + i),
              `gone${i % 3}.example.net.`,
              600 + i,
              {
                rcode: 3,
              },
            ),
          ),
          ...Array.from({ length: 6 }, (_, i) =>
            [0, 5000].flatMap((afterMs) =>
              asked(
                9000 + i * 1500 + afterMs,
                ends('10.244.1.7', 41_000 + i),
                fresh(i % 3),
                800 + i,
                {
                  tookMs: null,
                },
              ),
            ),
          ),
          ...Array.from({ length: 12 }, (_, i): Captured[] => {
            const syn = tcpPacket(ends(POD, 39_000 + i, UPSTREAM), 100, TCP.SYN);
            return [0, 1000, 3000].map((afterMs) => at(9000 + i * 800 + afterMs, syn));
          }),
        ]),
      ),
  },
  {
    name: 'a dual-stack pod uses the IPv6 address of the service first, for which the node has no rules, and then the other',
    code: 'ND3005',
    packets: () =>
      Promise.resolve(
        inOrder(
          Array.from({ length: 40 }, (_, i) => {
            const name = `${names[2 + (i % 3)]!}.shop.svc.cluster.local.`;
            const six = asked(
              i * 300,
              ends('fd00:42::7', 31_000 + i, 'fd00:96::a'),
              name,
              300 + i,
              {
                tookMs: null,
              },
            );
            const error = icmpError('fd00:42::1', six[0]!.bytes, 1, 0, 'fd00:42::7');
            return [
              ...six,
              at(i * 300 + 0.1, error),
              ...asked(i * 300 + 1, ends('10.244.1.7', 33_000 + i), name, 500 + i),
            ];
          }),
        ),
      ),
  },
  {
    name: 'the link to the DNS pods repeatedly goes down for two seconds',
    code: 'ND3007',
    without: ['ND3013'],
    packets: (seed) =>
      play(
        pods('go', 6, { lookups: 40, everyMs: 600 }),
        (passing) =>
          passing.atMs > 5000 && passing.atMs % 7000 < 2300 ? { lost: true } : healthy(passing),
        { seed },
      ),
  },
  {
    name: 'a DNS pod is replaced: new sockets are translated to the new one, and two old sockets still to the old one, seen after the translation',
    code: 'ND3002',
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 200 }, (_, i) => {
            const server = i < 80 && (i + seed) % 2 === 0 ? POD : '10.244.4.2';
            const way = ends(`10.244.1.${30 + (i % 3)}`, 33_000 + i, server);
            return asked(i * 100, way, `${names[i % 2]!}.`, 300 + i);
          }),
          ...[7, 8].flatMap((client) =>
            Array.from({ length: 40 }, (_, i) => {
              const way = ends(`10.244.1.${client}`, 21_000 + client, POD);
              const name = `${names[i % 3]!}.`;
              return asked(i * 450, way, name, 40 * client + i, { tookMs: i < 18 ? 0.6 : null });
            }),
          ),
        ]),
      ),
  },
  {
    name: 'a DNS pod is replaced: an old socket still goes to the old one, and so does one of many new ones, which reuses a port',
    code: 'ND3002',
    without: ['ND3007', 'ND3008'],
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 400 }, (_, i) => {
            const isOld = i === 300;
            const server = i < 100 || isOld ? POD : '10.244.4.2';
            const way = ends(`10.244.1.${30 + (i % 3)}`, 33_000 + i, server);
            return asked(i * 60, way, `${names[i % 2]!}.`, 300 + i, { tookMs: isOld ? null : 0.6 });
          }),
          asked(17_000, ends('10.244.1.30', 33_000, POD), 'db.', 900, { tookMs: null }),
          asked(18_000, ends('10.244.1.30', 33_003, POD), 'db.', 901, { tookMs: null }),
          ...Array.from({ length: 40 }, (_, i) => {
            const way = ends('10.244.1.7', 21_007, POD);
            const name = `${names[(i + seed) % 3]!}.`;
            return asked(10 + i * 590, way, name, 40 + i, { tookMs: i < 10 ? 0.6 : null });
          }),
        ]),
      ),
  },
  {
    name: 'one of four DNS pods ends: an old socket still goes to it, and much later two queries from a reused port',
    code: 'ND3002',
    without: ['ND3007', 'ND3008'],
    packets: (seed) =>
      Promise.resolve(
        inOrder([
          ...Array.from({ length: 400 }, (_, i) => {
            const pod = i < 100 ? (i + seed) % 4 : 1 + (i % 3);
            const [client, name] = [`10.244.1.${30 + (i % 3)}`, `${names[i % 2]!}.`];
            return taken(i * 60, client, 33_000 + i, `10.244.${3 + pod}.2`, name, 300 + i, true);
          }),
          ...[17_000, 19_500].flatMap((atMs) =>
            [900, 901].map((id) => taken(atMs, '10.244.1.30', 33_003, POD, 'db.', id, false)),
          ),
          ...Array.from({ length: 80 }, (_, i) =>
            taken(10 + i * 290, '10.244.1.7', 21_007, POD, `${names[i % 3]!}.`, 40 + i, i < 20),
          ),
        ]),
      ),
  },
  {
    name: 'replies come from the DNS pod, and no longer from the service: in the second in which it begins others were answered',
    code: 'ND3016',
    without: ['ND3007'],
    packets: (seed) =>
      play(
        [
          ...pods('glibc', 3, { lookups: 24, everyMs: 290 }),
          ...pods('go', 1, { lookups: 24, everyMs: 290, from: 40 }),
        ],
        (passing) => ({
          ...healthy(passing),
          behind: POD,
          ...(passing.atMs >= 6700 && { from: POD }),
        }),
        { seed },
      ),
  },
  {
    name: 'the first name server of resolv.conf is dead: c-ares learns to skip it, all others use it first',
    code: 'ND3005',
    without: ['ND3008'],
    packets: () => Promise.resolve(inOrder([learning(0), ...[2, 3, 4].map(inOrderOfList)])),
  },
  {
    name: 'the first name server of resolv.conf is dead, seen at one client with c-ares, which learns to skip it',
    code: 'ND3005',
    without: ['ND3008'],
    packets: () => Promise.resolve(inOrder([learning(0)])),
  },
];

const LIST = ['10.240.1.1', '10.240.1.2'] as const;
const service = (i: number): string => `${['backend', 'db'][i % 2]}.shop.svc.cluster.local.`;

/**
 * Six names are sent to the dead server, and each is then retried at the other one. From then on, the other server is
 * tried first, and the dead one only occasionally.
 */
function learning(client: number): Captured[] {
  const from = `10.244.1.${100 + client}`;
  return Array.from({ length: 120 }, (_, i): Captured[] => {
    const name = i < 6 ? `n${i}.example.com.` : service(i);
    const atMs = i < 6 ? i * 100 : 3000 + i * 180;
    const dead = asked(atMs, ends(from, 21_000, LIST[0]), name, i, { tookMs: null });
    const laterMs = i < 6 ? 2000 : i % 12 === 0 ? 1 : 0;
    return [
      ...(i < 6 || i % 12 === 0 ? dead : []),
      ...asked(atMs + laterMs, ends(from, 21_001, LIST[1]), name, 500 + i),
    ];
  }).flat();
}

/** Each name is sent to the dead server first, and to the other one five seconds later. */
function inOrderOfList(client: number): Captured[] {
  const from = `10.244.1.${100 + client}`;
  return Array.from({ length: 5 }, (_, i): Captured[] => [
    ...asked(i * 5100, ends(from, 31_000 + i, LIST[0]), service(i), i, { tookMs: null }),
    ...asked(i * 5100 + 5001, ends(from, 31_000 + i, LIST[1]), service(i), i),
  ]).flat();
}
