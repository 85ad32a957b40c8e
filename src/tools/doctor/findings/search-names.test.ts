import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { corpResolvConf, inOrder, pods } from '../../../../test/kit/story-parts.ts';
import { examine, healthy, play } from '../../../../test/kit/story.ts';

/** The company's domain is before those of the cluster (dnsConfig with dnsPolicy None). */
const first = corpResolvConf.replace(/^search .*$/m, (line) => {
  const domains = line.split(' ').slice(1);
  return ['search', 'corp.example', ...domains.filter((each) => each !== 'corp.example')].join(' ');
});

const failing = async (...resolvers: readonly string[]): ReturnType<typeof examine> =>
  examine(
    inOrder(
      await Promise.all(
        resolvers.map((resolver, nth) =>
          play(
            pods(resolver, 1, {
              ...{ resolvConf: first, names: ['backend', 'redis.cache'], from: 7 + nth },
              ...{ lookups: 8, everyMs: 6000 },
            }),
            (passing) =>
              passing.name.endsWith('.corp.example.') ? { rcode: 2, tookMs: 9 } : healthy(passing),
            { seed: 1 },
          ),
        ),
      ),
    ),
  );

test('if the first search domain fails, glibc shows it and musl is reported to stop there', async () => {
  const { findings } = await failing('glibc', 'musl');
  const [found] = findings;
  assert.equal(found?.code, 'ND2003');
  assert.match(found.seen.join(' '), /search domain corp\.example\./);
  assert.match(found.seen.join(' '), /10\.244\.1\.8 end there.*musl/);
});

test('the same with only musl: Service-like names below one domain', async () => {
  const [found] = (await failing('musl')).findings;
  assert.equal(found?.code, 'ND2002');
  assert.match(
    found.seen.join(' '),
    /at a name under corp\.example\. .* search path probably begins with it/,
  );
});

const root = {
  ...soa('example.'),
  name: '.',
  data: { ...soa('example.').data, mname: 'a.root-servers.net.' },
};
const denied = (name: string): Given[] =>
  Array.from({ length: 6 }, (_, i) => ({
    ...{ atMs: i * 900 + name.length, name },
    reply: { rcode: RCODE.NXDOMAIN, authority: [root] },
  }));

test('names denied by the root without a search domain are Service names, unless the domain is private', async () => {
  const found = await findingOf('ND2011', [...others(20), ...denied('cache.platform.')]);
  assert.match(found?.seen.join(' ') ?? '', /cache\.platform/);
  for (const name of ['printer.lan.', 'www.example.com.'])
    assert.equal(await findingOf('ND2011', [...others(20), ...denied(name)]), undefined);
});

/** One address for names of several owners. */
const replaced: readonly Given[] = [
  'api.stripe.com.eu.acme.example.',
  'quay.io.eu.acme.example.',
  'ap1.twillio.com.',
  'registry.qauy.io.',
].flatMap((name, nth) =>
  Array.from({ length: 3 }, (_, i) => ({ atMs: i * 900 + nth, name, address: '198.51.100.7' })),
);

test('an address for missing names inside and outside a search domain is not a wildcard', async () => {
  const walk = (stem: string, atMs: number): Given[] =>
    ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.'].map((domain, step) => ({
      ...{ atMs: atMs - 5 + step, name: `${stem}${domain}` },
      reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] },
    }));
  const all = [
    ...others(20),
    ...replaced,
    ...walk('api.stripe.com.', 900),
    ...walk('quay.io.', 901),
  ];
  const found = await findingOf('ND4033', all);
  assert.match(found?.seen.join(' ') ?? '', /same address 198\.51\.100\.7/);
  assert.equal(await findingOf('ND2004', all), undefined);
});

test('an address of thousands of names is not one for missing names because two of them are', async () => {
  const crawled = Array.from({ length: 400 }, (_, i): Given => {
    const name = `www.h${i}.example.${i % 2 === 0 ? 'org' : 'net'}.`;
    return { atMs: i * 20, name, address: '198.51.100.7' };
  });
  const missing = ['queue.', 'stage.'].map((name, i) => ({
    ...{ atMs: 500 + i, name, address: '198.51.100.7' },
  }));
  assert.notEqual((await findingOf('ND4033', [...crawled, ...missing]))?.severity, 'critical');
});

test('repeated BADCOOKIE or BADVERS is reported with the server', async () => {
  const edns = { udpSize: 1232, version: 0, dnssecOk: false, options: [] };
  for (const [code, rcode] of [
    ['ND4049', RCODE.BADCOOKIE],
    ['ND4050', RCODE.BADVERS],
  ] as const) {
    const all = Array.from({ length: 12 }, (_, i): Given => ({
      ...{ atMs: i * 700, name: 'rates.bank.example.', server: '203.0.113.53' },
      reply: { rcode, edns, query: { edns } },
    }));
    const found = await findingOf(code, [...others(20), ...all]);
    assert.match(found?.seen[0] ?? '', /203\.0\.113\.53/);
  }
});
