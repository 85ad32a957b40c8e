import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alias } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const NAME = 'legacy.web.svc.cluster.local.';

/** Lookups of a Service that is an alias of a name without an address. */
const lookups = (target: string): Given[] =>
  Array.from({ length: 12 }, (_, nth) => nth * 900).flatMap((atMs): Given[] => {
    const reply = { answer: [alias(NAME, target)] };
    return [
      { atMs, name: NAME, reply },
      { atMs: atMs + 1, name: NAME, type: 'AAAA', reply },
    ];
  });

test('a Service that is an alias of a short name is not fully qualified', async () => {
  for (const [target, whole] of [
    ['legacy.data.', 'legacy.data.svc.cluster.local'],
    ['legacy.data.svc.', 'legacy.data.svc.cluster.local'],
    ['legacy-db.', 'legacy-db.NAMESPACE.svc.cluster.local'],
  ] as const) {
    const found = await findingOf('ND4032', [...others(20), ...lookups(target)]);
    assert.match(found?.title ?? '', /not fully qualified/);
    assert.ok(found!.fix.some((text) => text.includes(whole)));
    assert.equal(
      await findingOf('ND3035', [...others(20), ...lookups(target)]),
      undefined,
      'the same replies are reported once',
    );
  }
});

test('the upstream’s denial and the Service that was meant are mentioned', async () => {
  const full = others(10, 'legacy.data.svc.cluster.local.');
  const upstream = Array.from({ length: 3 }, (_, nth): Given => {
    const ends = { client: '10.244.2.9', server: '10.0.0.2' };
    return { atMs: nth * 900 + 3, name: 'legacy.data.', ...ends, reply: { rcode: 3 } };
  });
  const found = await findingOf('ND4032', [...full, ...upstream, ...lookups('legacy.data.')]);
  assert.match(found?.seen.join(' ') ?? '', /legacy\.data\. at its upstream .* NXDOMAIN/);
  assert.match(found!.seen.join(' '), /legacy\.data\.svc\.cluster\.local resolves/);
});

test('an alias of an external name that does not exist is not a short name', async () => {
  for (const target of ['legacy.example.com.', 'quay.io.', 'db.corp.internal.'])
    assert.equal(await findingOf('ND4032', [...others(20), ...lookups(target)]), undefined);
});
