import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';
import { examine } from '../../../../test/kit/story.ts';

const NAME = 'gw.example.net.';
const NXDOMAIN = { rcode: 3 };

/** Lookups whose AAAA queries get NXDOMAIN. */
const lookups = (ends: Partial<Given> = {}): Given[] =>
  Array.from({ length: 12 }, (_, nth) => nth * 900).flatMap((atMs): Given[] => [
    { atMs, name: NAME, address: '192.0.2.4', ...ends },
    { atMs: atMs + 1, name: NAME, type: 'AAAA', reply: NXDOMAIN, ...ends },
  ]);
const services = others(20, 'db.shop.svc.cluster.local.');
const POD = { client: '10.244.2.9', server: '10.0.0.2' };

test('an upstream that answers AAAA with NXDOMAIN itself is named, and is the place of the fix', async () => {
  const found = await findingOf('ND8002', [...services, ...lookups(), ...lookups(POD)]);
  assert.match(found?.seen.join(' ') ?? '', /upstream 10\.0\.0\.2 gives this answer itself/);
  assert.match(found!.fix[0]!, /10\.0\.0\.2/);
  assert.match(found!.prove, /@10\.0\.0\.2/);
  assert.doesNotMatch(found!.why, /template/);
});

test('without the upstream in the capture, both it and a template are possible', async () => {
  const found = await findingOf('ND8002', [...services, ...lookups()]);
  assert.match(found?.why ?? '', /zone’s own servers .* or a template/);
  assert.match(found!.fix[0]!, /upstream/);
});

test('lost A queries do not hide that AAAA queries get NXDOMAIN', async () => {
  const lost = Array.from({ length: 8 }, (_, nth) =>
    asked(
      nth * 1300 + 50,
      ends('10.244.1.7', 40_000 + nth),
      'db.shop.svc.cluster.local.',
      nth,
    ).slice(0, 1),
  );
  const { findings } = await examine(inOrder([given([...services, ...lookups()]), ...lost]));
  assert.ok(findings.some(({ code }) => code === 'ND8002'));
});
