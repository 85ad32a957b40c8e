import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { back, TCP, tcpPacket, type Captured } from '../../../../test/kit/packets.ts';
import { at, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';
import type { Finding } from './finding.ts';

const CLIENT = '10.244.1.7';
const missing = Array.from({ length: 8 }, (_, nth): Given => ({
  atMs: nth * 2000 + 300,
  name: 'otel-collector.monitoring.svc.cluster.local.',
  reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] },
}));
const found = Array.from({ length: 12 }, (_, nth): Given => ({
  atMs: nth * 1500 + 700,
  name: 'orders.shop.svc.cluster.local.',
  address: '10.96.71.4',
}));

/** A connection after each lookup of the Service. @param opens whether it is accepted */
const connections = (opens: (nth: number) => boolean): Captured[] =>
  found.flatMap(({ atMs }, nth) => {
    const way = { from: CLIENT, fromPort: 41_000 + nth, to: '10.96.71.4', toPort: 80 };
    return [
      at(atMs + 10, tcpPacket(way, 1, TCP.SYN)),
      opens(nth)
        ? at(atMs + 11, tcpPacket(back(way), 1, TCP.SYN | TCP.ACK))
        : at(atMs + 1010, tcpPacket(way, 1, TCP.SYN)),
    ];
  });

const findings = async (packets: readonly Captured[]): Promise<readonly Finding[]> =>
  (await examine(inOrder([given([...others(20), ...missing, ...found]), [...packets]]))).findings;

test('a missing name is information if connections to another name’s address fail', async () => {
  const all = await findings(connections((nth) => nth % 2 === 0));
  assert.equal(all[0]?.code, 'ND3091');
  assert.equal(all.find(({ code }) => code === 'ND2008')?.severity, 'info');
});

test('a missing name is a warning if connections are accepted', async () => {
  const all = await findings(connections(() => true));
  assert.equal(all[0]?.code, 'ND2008');
  assert.equal(all[0].severity, 'warning');
});

const DOMAINS = ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];

/** The queries of lookups with every search domain. @param isSeen for the number of the lookup and of the domain */
const searched = (
  name: string,
  address: string | null,
  isSeen: (nth: number, domain: number) => boolean,
): Given[] =>
  Array.from({ length: 9 }, (_, nth) => nth * 4000).flatMap((atMs, nth) =>
    DOMAINS.flatMap((domain, at): Given[] => {
      const query = { atMs: atMs + at * 2, name: name + domain };
      if (!isSeen(nth, at)) return [];
      return domain === '' && address !== null
        ? [{ ...query, address }]
        : [{ ...query, reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } }];
    }),
  );

test('at one of several DNS pods, a name that is denied with every domain is missing, if whole lookups are rare', async () => {
  const known = searched('api.example.com.', '192.0.2.7', () => true);
  const codesOf = async (address: string | null): Promise<readonly string[]> => {
    // Two whole lookups, single queries, and one that went to other pods in between.
    const isSeen = (nth: number, at: number): boolean => nth < 2 || nth % 3 === at;
    const parts = searched('redis-mastr.cache.', address, isSeen).map((each) => ({
      ...each,
      atMs: each.atMs + 2000,
    }));
    const split = [parts[3]!, parts[2]!].map((each, at) => ({ ...each, atMs: 60_000 + at * 2 }));
    const all = await examine(given([...known, ...parts, ...split]));
    return all.findings.flatMap(({ code, affected }) =>
      affected?.includes('redis-mastr.cache.') === true ? code : [],
    );
  };
  assert.deepEqual(await codesOf(null), ['ND2008']);
  assert.deepEqual(await codesOf('10.96.3.4'), []);
});

test('a short name that exists only in another namespace is reported for the clients that do not find it', async () => {
  const lookups = (namespace: string, client: string, isFound: boolean): Given[] =>
    [`${namespace}.svc.cluster.local.`, ...DOMAINS.slice(1)]
      .slice(0, isFound ? 1 : undefined)
      .flatMap((domain, at) =>
        Array.from({ length: 8 }, (_, nth): Given => ({
          ...{ atMs: nth * 2000 + at * 3, client, name: `pricing.${domain}` },
          ...(isFound
            ? { address: '10.96.3.4' }
            : { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } }),
        })),
      );
  const failing = lookups('checkout', '10.244.1.19', false);
  const fine = lookups('inventory', '10.244.2.8', true);
  const { findings: all } = await examine(given([...others(20), ...failing, ...fine]));
  assert.equal(all[0]?.code, 'ND2008');
  assert.equal(all[0].severity, 'warning');
  assert.match(
    all[0].seen.join(' '),
    /pricing does not exist in namespace checkout; it exists as pricing\.inventory\.svc\.cluster\.local\./,
  );
  assert.deepEqual(
    new Set(all[0].exchanges.map(({ client }) => client.address)),
    new Set(['10.244.1.19']),
  );
  const own = [...fine, ...lookups('checkout', '10.244.1.19', true)];
  const { findings: none } = await examine(given([...others(20), ...own]));
  assert.equal(
    none.find(({ code }) => code === 'ND2008'),
    undefined,
  );
});

test('a name that says that it does not exist is information', async () => {
  const lookups = (name: string): Given[] => missing.map((each) => ({ ...each, name }));
  for (const [name, severity] of [
    ['dns-canary-nonexistent.probe.svc.cluster.local.', 'info'],
    ['does-not-exist.shop.svc.cluster.local.', 'info'],
    ['existing-orders.shop.svc.cluster.local.', 'warning'],
  ] as const) {
    const packets = given([...others(20), ...lookups(name), ...found]);
    const { findings: all } = await examine(packets);
    assert.equal(all.find(({ code }) => code === 'ND2008')?.severity, severity, name);
  }
});
