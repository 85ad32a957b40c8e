import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { given, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

/** Two servers behind one address alternate, and one denies the name. @param ttlAt of a denial, by second */
async function firstFinding(ttlAt: (second: number) => number) {
  const all = Array.from({ length: 60 }, (_, second): Given[] => {
    const isDenied = second % 3 !== 0;
    return (['A', 'AAAA'] as const).map((type) => ({
      ...{ atMs: second * 1000, name: 'ledger.example.com.', type },
      ...(isDenied || type === 'AAAA' ? {} : { address: '192.0.2.7' }),
      ...(isDenied && { reply: denial(ttlAt(second)) }),
    }));
  }).flat();
  return (await examine(given(all))).findings[0];
}

const denial = (ttl: number) => ({
  rcode: RCODE.NXDOMAIN,
  authority: [
    {
      ...{ name: 'example.com.', type: 6, class: 1, ttl },
      data: {
        ...{ mname: 'ns.', rname: 'host.', serial: 1 },
        ...{ refresh: 1, retry: 1, expire: 1, minimum: ttl },
      },
    },
  ],
});

test('denials with one expiry beside answers are a cached denial of one hidden server', async () => {
  const found = await firstFinding((second) => 900 - second);
  assert.equal(found?.code, 'ND8003');
  assert.match(found.title, /cached NXDOMAIN/);
});

test('a hidden server that denies the name afresh does not have it', async () => {
  for (const ttlAt of [
    () => 900,
    (second: number) => 30 - (second % 30),
    (second: number) => 59 - second,
  ])
    assert.equal((await firstFinding(ttlAt))?.code, 'ND4005');
});

test('a name that is denied first and then found for good has one change, and no hidden server', async () => {
  const all = Array.from({ length: 100 }, (_, nth): Given => ({
    ...{ atMs: nth * 3000, name: 'fresh.example.com.' },
    ...(nth < 30 ? { reply: denial(90 - nth * 3) } : { address: '192.0.2.7', ttl: 60 }),
  }));
  const { findings } = await examine(given(all));
  const found = findings.find(({ code }) => code === 'ND8003');
  assert.match(found?.title ?? '', /A new name stays invisible/);
  assert.equal(found!.severity, 'warning');
});
