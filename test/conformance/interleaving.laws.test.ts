import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { FLAG, OPCODE, rcodeName, TYPE, typeName } from '../../src/server/wire/iana.ts';
import type { DnsRecord } from '../../src/server/wire/message.ts';
import { printData } from '../../src/server/wire/print.ts';
import { scriptedNetwork, type Answer, type Asked } from '../kit/upstream.ts';
import { makeWorld, type AskOptions, type World } from '../kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-interleaving-'));
after(() => rmSync(directory, { recursive: true }));
const meta = (name: string, namespace: string): object => ({ name, namespace });
const items = [
  { kind: 'Namespace', metadata: { name: 'shop' } },
  { kind: 'Namespace', metadata: { name: 'default' } },
  {
    kind: 'Service',
    metadata: meta('web', 'shop'),
    spec: { clusterIPs: ['10.96.0.1', 'fd00::1'], ports: [{ name: 'http', port: 80 }] },
  },
  {
    kind: 'Service',
    metadata: meta('ext', 'shop'),
    spec: { type: 'ExternalName', externalName: 'www.example.org' },
  },
  {
    kind: 'Pod',
    metadata: meta('client', 'default'),
    spec: { containers: [] },
    status: { phase: 'Running', podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] },
  },
].map((object) => ({ apiVersion: 'v1', ...object }));
writeFileSync(
  join(directory, 'objects.json'),
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
);
writeFileSync(
  join(directory, 'hosts'),
  '192.0.2.77 printer.example.org\n192.0.2.78 *.example.net\n',
);

const cluster = `kubernetes cluster.local in-addr.arpa {
    manifests ${directory}
    pods insecure
    fallthrough in-addr.arpa
  }`;
const blocks = {
  'kubernetes, nothing cached': `errors\n ${cluster}\n forward . 192.0.2.53`,
  'minimal, and kubeadm’s cache that leaves the cluster out': `errors\n minimal\n cache 30 {
    disable success cluster.local
    disable denial cluster.local
  }\n ${cluster}\n forward . 192.0.2.53`,
  'cache and loadbalance': `errors\n loadbalance\n cache 30\n ${cluster}\n forward . 192.0.2.53`,
  'autopath by name, with cache': `errors\n autopath @name {
    search example.net
  }\n cache 30\n ${cluster}\n forward . 192.0.2.53`,
  'autopath by client, with cache': `errors\n autopath @kubernetes {
    search example.net
  }\n cache 30\n ${cluster.replace('insecure', 'verified')}\n forward . 192.0.2.53`,
  'hosts, minimal, cache': `errors\n minimal\n cache 30\n hosts hosts {
    fallthrough
  }\n ${cluster}\n forward . 192.0.2.53`,
};

const soa = 'org. 60 SOA ns.example. h.example. 1 1 1 1 60';

/** An upstream whose replies depend only on the query. */
function internet({ name, type, query }: Asked): Answer {
  if (query.opcode !== OPCODE.QUERY) return { rcode: 'NOTIMP' };
  if (query.class !== 1 || !query.recursionDesired) return { rcode: 'REFUSED' };
  if (name !== 'www.example.org.') return { rcode: 'NXDOMAIN', authority: [soa] };
  if (type === TYPE.A) return { answer: ['@ 300 A 198.51.100.7'] };
  return { authority: [soa] };
}

interface Asks {
  readonly name: string;
  readonly type: string;
  readonly options: AskOptions;
}

const suffix = 'svc.cluster.local.';
const asks: fc.Arbitrary<Asks> = fc.record({
  name: fc.constantFrom(
    `web.shop.${suffix}`,
    `WEB.shop.${suffix}`,
    `ext.shop.${suffix}`,
    `no.shop.${suffix}`,
    `www.example.org.default.${suffix}`,
    'cluster.local.',
    '1.0.96.10.in-addr.arpa.',
    '10-0-0-9.default.pod.cluster.local.',
    'www.example.org.',
    'printer.example.org.',
    'one.example.net.',
  ),
  type: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('A', 'AAAA', 'SRV', 'PTR', 'TXT', 'NS', 'ANY') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('CNAME', 'SOA', 'MX', 'DS', 'HTTPS', 'NAPTR', 'RRSIG'),
    },
    // Clients do not query transfers, or types that only describe a query (OPT, TSIG).
    { weight: 1, arbitrary: fc.integer({ min: 257, max: 0xffff }).map((type) => `TYPE${type}`) },
  ),
  options: fc.record({
    // Nearly all queries from real clients share one class and opcode, and the few others must not affect them.
    qclass: fc.oneof(
      { weight: 4, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.constantFrom(0, 3, 4, 254, 255) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }) },
      // Classes with the same low bits as IN.
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 15 }).map((bit) => 1 | (1 << bit)) },
    ),
    flags: fc
      .tuple(
        fc.oneof(
          { weight: 6, arbitrary: fc.constant(OPCODE.QUERY) },
          { weight: 1, arbitrary: fc.constant(OPCODE.NOTIFY) },
          { weight: 1, arbitrary: fc.integer({ min: 0, max: 15 }) },
        ),
        fc.oneof({ weight: 3, arbitrary: fc.constant(FLAG.RD) }, fc.constant(0)),
        fc.constantFrom(0, FLAG.CD, FLAG.AD),
      )
      .map(([opcode, recursion, more]) => recursion | (opcode << 11) | more),
    dnssecOk: fc.boolean(),
    proto: fc.constantFrom('udp', 'tcp'),
    client: fc.constantFrom('10.244.0.9', '10.244.0.10', 'fd00::9'),
  }),
});

/** A question in IN, then in each class that differs in one bit, then with each opcode. */
const neighbours: Asks[][] = [0, 16].flatMap((size) =>
  [false, true].map((dnssecOk) =>
    Array.from({ length: Math.max(1, 2 * size) }, (_, i) => ({
      name: 'www.example.org.',
      type: 'A',
      options: {
        qclass: i < size ? 1 ^ (1 << i) : 1,
        flags: FLAG.RD | ((i < size ? 0 : i - size) << 11),
        dnssecOk,
        proto: 'udp' as const,
        client: '10.244.0.9',
      },
    })),
  ),
);

const corefiles: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(blocks).map(([title, block]) => [title, `.:53 {\n ${block}\n}`]),
  ),
  'a view for one client': `.:53 {
  view one {
    expr incidr(client_ip(), '10.244.0.9/32')
  }
  ${blocks['cache and loadbalance']}
}
.:53 {
  ${blocks['hosts, minimal, cache']}
}`,
};

async function start(corefile: string): Promise<World> {
  const clock = new VirtualClock();
  return makeWorld(corefile, {
    clock,
    directory,
    network: scriptedNetwork(clock, internet),
  });
}

/**
 * The reply as text, without TTLs, which count down, and without the authority bit of cached replies, where CoreDNS
 * differs.
 */
async function told(world: World, { name, type, options }: Asks): Promise<string> {
  const { rcode, flags, question, answer, authority, additional, edns } = await world.ask(
    `${name} ${type}`,
    options,
  );
  const records = (section: readonly DnsRecord[]): string =>
    section
      .map((one) =>
        `${one.name} ${one.class} ${typeName(one.type)} ${printData(one.type, one.data)}`.toLowerCase(),
      )
      .sort()
      .join(', ');
  return [
    rcodeName(rcode),
    (flags & ~FLAG.AA).toString(16),
    question.map((one) => `${one.name} ${one.type} ${one.class}`).join(),
    records(answer),
    records(authority),
    records(additional),
    edns === null ? 'no EDNS' : `DO ${edns.dnssecOk}`,
  ].join(' | ');
}

describe('after any earlier queries, a query is answered as by a server that has just started:', () => {
  for (const [title, corefile] of Object.entries(corefiles)) {
    test(title, async () => {
      const fresh = new Map<string, Promise<string>>();
      const freshly = (query: Asks): Promise<string> => {
        const key = JSON.stringify(query);
        const known =
          fresh.get(key) ??
          start(corefile).then(async (world) => {
            const answer = await told(world, query);
            await world.close();
            return answer;
          });
        fresh.set(key, known);
        return known;
      };
      // Queries in a group are in flight at the same time.
      const inGroups = (one: fc.Arbitrary<Asks>): fc.Arbitrary<Asks[][]> =>
        fc.array(fc.array(one, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 12 });
      const groups = fc.oneof(
        inGroups(asks),
        // Queries one name and type in all variants. A reply cached for one variant must not answer another.
        asks.chain(({ name, type }) => inGroups(asks.map((one) => ({ ...one, name, type })))),
      );
      await fc.assert(
        fc.asyncProperty(groups, async (asked) => {
          const world = await start(corefile);
          try {
            // Each group is sent twice, because a single query is not cached everywhere.
            for (const group of asked.flatMap((one) => [one, one])) {
              const answers = await Promise.all(group.map((query) => told(world, query)));
              for (const [at, query] of group.entries()) {
                // A query without the RD bit may be answered from the cache.
                if ((query.options.flags! & FLAG.RD) === 0) continue;
                assert.equal(answers[at], await freshly(query), JSON.stringify(query));
              }
            }
          } finally {
            await world.close();
          }
        }),
        { numRuns: 30, examples: [[neighbours]] },
      );
    });
  }
});
