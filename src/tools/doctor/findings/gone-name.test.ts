import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

const name = 'catalog.shop.svc.cluster.local.';

/** A lookup each 400 ms. @param isThere whether the name exists at the nth one */
function asked(isThere: (nth: number) => boolean, server = '10.96.0.10'): Given[] {
  return Array.from({ length: 120 }, (_, nth) => nth).flatMap((nth) => {
    const missing = { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] };
    const way = { name, server, client: `10.244.1.${20 + (nth % 3)}` };
    const empty = { rcode: 0, authority: [soa('cluster.local.')] };
    return [
      isThere(nth)
        ? { ...way, atMs: nth * 400, address: '10.96.57.101', ttl: 5 }
        : { ...way, atMs: nth * 400, reply: missing },
      {
        ...{ ...way, atMs: nth * 400 + 1, type: 'AAAA' as const },
        reply: isThere(nth) ? empty : missing,
      },
    ];
  });
}

const inTurns = (nth: number): boolean => nth % 28 < 14;
const byChance = (nth: number): boolean => Math.imul((nth + 1) ** 2, 0x9e3779b1) >>> 31 === 0;

test('a name that vanishes and comes back in turns of seconds flaps at every server', async () => {
  const [pod, other] = ['10.244.2.10', '10.244.1.3'] as const;
  for (const packets of [asked(inTurns), [...asked(inTurns, pod), ...asked(inTurns, other)]]) {
    const { findings } = await examine(given([...others(20), ...packets]));
    assert.equal(findings[0]?.code, 'ND8010');
    assert.equal(findings[0].severity, 'critical');
    assert.match(findings[0].seen.join(' '), /catalog\.shop.* disappeared [45] times/);
    assert.ok(!findings.some(({ code }) => code === 'ND8001'));
  }
});

test('a name that is found and missing by chance is at one of several servers', async () => {
  const { findings } = await examine(given([...others(20), ...asked(byChance)]));
  assert.equal(findings[0]?.code, 'ND8001');
  assert.ok(!findings.some(({ code }) => code === 'ND8010'));
});

test('the names of a headless Service that are all gone show that its pods are not ready', async () => {
  const names = ['', 'kafka-0.', 'kafka-1.', 'kafka-2.', 'kafka-3.', 'kafka-4.', 'kafka-5.'].map(
    (pod) => `${pod}kafka-hs.streaming.svc.cluster.local.`,
  );
  const lookups = names.flatMap((each, at) =>
    Array.from({ length: 60 }, (_, nth): Given => {
      const atMs = nth * 800 + at * 5;
      const reply = { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] };
      return nth < 30
        ? { atMs, name: each, address: `10.244.1.${at}` }
        : { atMs, name: each, reply };
    }),
  );
  const { findings } = await examine(given([...others(40), ...lookups]));
  assert.equal(findings[0]?.code, 'ND8010');
  assert.equal(findings[0].severity, 'critical');
  assert.match(findings[0].title, /headless Service .*: kafka-hs\.streaming$/);
  assert.match(findings[0].fix[0]!, /-n streaming get service,endpointslices kafka-hs /);
});

for (const [rcode, title] of [
  [0, /headless Service has lost its ready endpoints: cassandra\.data$/],
  [RCODE.NXDOMAIN, /used to exist is gone$/],
] as const)
  test(`one name without an address, rcode ${rcode}: only NODATA proves that its Service exists`, async () => {
    const reply = { rcode, authority: [soa('cluster.local.')] };
    const lookups = Array.from({ length: 60 }, (_, nth): Given => {
      const way = { atMs: nth * 800, name: 'cassandra.data.svc.cluster.local.' };
      return nth < 20 ? { ...way, address: '10.244.1.9' } : { ...way, reply };
    });
    const [first] = (await examine(given([...others(40), ...lookups]))).findings;
    assert.equal(first?.code, 'ND8010');
    assert.match(first.title, title);
    assert.equal(/NODATA/.test(first.seen.join()), rcode === 0);
  });
