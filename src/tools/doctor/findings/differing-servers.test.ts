import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import type { DnsRecord } from '../../../server/wire/message.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

const [NEW, OLD, SERVICE] = ['10.244.1.3', '10.244.2.10', '10.96.0.10'] as const;

interface Version {
  readonly primary: string;
  readonly serial: number;
}
const current: Version = { primary: 'ns.dns.cluster.local.', serial: 200 };
const stale: Version = { primary: 'ns.dns.cluster.local.', serial: 100 };

const soa = (zone: string, { primary, serial }: Version): DnsRecord => ({
  ...{ name: zone, type: TYPE.SOA, class: 1, ttl: 5 },
  data: {
    ...{ mname: primary, rname: `host.${zone}`, serial, refresh: 7200 },
    ...{ retry: 1800, expire: 86_400, minimum: 5 },
  },
});

const isOld = (nth: number): boolean => Math.imul((nth + 1) ** 2, 0x9e3779b1) >>> 31 === 0;

/** A lookup each second of a name that exists, and one of a name that differs. @param serverOf the version */
function asked(
  zone: string,
  versionOf: (nth: number) => Version,
  serverOf: (nth: number) => string,
  isThere: (nth: number) => boolean,
): Given[] {
  return Array.from({ length: 40 }, (_, nth) => nth).flatMap((nth) => {
    const way = { server: serverOf(nth), client: '10.244.1.21' };
    const authority = [soa(zone, versionOf(nth))];
    return [
      {
        ...way,
        atMs: nth * 1000,
        name: `typo.${zone}`,
        reply: { rcode: RCODE.NXDOMAIN, authority },
      },
      isThere(nth)
        ? { ...way, atMs: nth * 1000 + 10, name: `orders.${zone}`, address: '10.96.88.7', ttl: 5 }
        : {
            ...way,
            atMs: nth * 1000 + 10,
            name: `orders.${zone}`,
            reply: { rcode: RCODE.NXDOMAIN, authority },
          },
    ];
  });
}

const first = async (all: readonly Given[]) =>
  (await examine(given([...others(20), ...all]))).findings[0];

test('a DNS pod with an older serial number has an old copy of the zone', async () => {
  const zone = 'shop.svc.cluster.local.';
  const found = await first(
    asked(
      zone,
      (nth) => (isOld(nth) ? stale : current),
      (nth) => (isOld(nth) ? OLD : NEW),
      (nth) => !isOld(nth),
    ),
  );
  assert.equal(found?.code, 'ND8001');
  assert.match(
    found.seen[0]!,
    /10\.244\.1\.3 serves serial 200 .*10\.244\.2\.10 serves serial 100/,
  );
  assert.match(found.why, /^10\.244\.2\.10 has an old copy/);
});

test('behind one address two primaries of a zone in turns are two upstreams', async () => {
  const views = [
    { primary: 'ns1.public.net.', serial: 7 },
    { primary: 'dc1.acme.com.', serial: 8 },
  ] as const;
  const found = await first(
    asked(
      'acme.com.',
      (nth) => views[isOld(nth) ? 0 : 1],
      () => SERVICE,
      (nth) => !isOld(nth),
    ),
  );
  assert.equal(found?.code, 'ND4005');
  assert.match(found.seen[0]!, /ns1\.public\.net.*dc1\.acme\.com|dc1\.acme\.com.*ns1\.public\.net/);
});

test('a zone that changes once, and versions in which all names are the same, are well', async () => {
  const zone = 'acme.com.';
  const changed = asked(
    zone,
    (nth) => (nth < 20 ? stale : current),
    () => SERVICE,
    (nth) => nth >= 20,
  );
  assert.ok(!['ND4005', 'ND8001'].includes((await first(changed))?.code ?? ''));
  const same = asked(
    zone,
    (nth) => (isOld(nth) ? stale : current),
    (nth) => (isOld(nth) ? OLD : NEW),
    () => true,
  );
  assert.ok(!['ND4005', 'ND8001'].includes((await first(same))?.code ?? ''));
});

test('a new name at DNS pods whose serial numbers differ by one second is not an old copy', async () => {
  const zone = 'shop.svc.cluster.local.';
  const later: Version = { ...current, serial: current.serial + 1 };
  const created = asked(
    zone,
    (nth) => (nth % 2 === 0 ? current : later),
    (nth) => (nth % 2 === 0 ? NEW : OLD),
    (nth) => nth >= 20,
  );
  assert.ok(!['ND4005', 'ND8001'].includes((await first(created))?.code ?? ''));
});

test('a zone at two providers, with addresses that change each time, is well', async () => {
  const providers = ['dns1.one.net.', 'ns-2.two.org.'].map((primary) => ({ primary, serial: 1 }));
  const all = asked(
    'example.com.',
    (nth) => providers[isOld(nth) ? 0 : 1]!,
    () => '10.0.0.2',
    () => true,
  ).map((each, nth) =>
    each.address === undefined ? each : { ...each, address: `192.0.2.${(nth * 7) % 4}`, ttl: 2 },
  );
  assert.ok(!['ND4005', 'ND8001'].includes((await first(all))?.code ?? ''));
});

test('a secondary whose zone transfers are refused has an old copy, also where each query passes several servers', async () => {
  const zone = 'acme.com.';
  const [primary, secondary] = ['10.244.2.30', '10.244.2.31'];
  const chain = (clients: readonly string[], serverOf: (nth: number) => string): Given[] =>
    asked(
      zone,
      (nth) => (isOld(nth) ? stale : current),
      serverOf,
      (nth) => !isOld(nth),
    ).map((each, nth) => ({ ...each, client: clients[nth % clients.length]! }));
  const transfers = Array.from({ length: 6 }, (_, nth): Given => {
    const way = { atMs: nth * 5000, name: zone, client: secondary, server: primary };
    return { ...way, type: nth % 2 === 0 ? 'IXFR' : 'AXFR', reply: { rcode: RCODE.REFUSED } };
  });
  const found = await first([
    ...chain(['10.244.1.21'], () => '10.244.1.3'),
    ...chain(['10.244.1.3'], () => '10.244.2.4'),
    ...chain(['10.244.2.4'], () => '10.244.2.5'),
    ...chain(['10.244.2.5'], (nth) => (isOld(nth) ? secondary : primary)),
    ...transfers,
  ]);
  assert.equal(found?.code, 'ND4005');
  assert.match(found.title, /secondary name server has an old copy/);
  assert.match(found.seen.join(' '), /6 zone transfers that 10\.244\.2\.31 requested with REFUSED/);
  assert.match(found.fix[0]!, /Allow 10\.244\.2\.31/);
});
