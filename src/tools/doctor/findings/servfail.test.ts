import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, type Given } from '../../../../test/kit/given-answers.ts';

/** A query a second that gets this reply. */
const each = (name: string, more: Partial<Given>, startMs = 0): Given[] =>
  Array.from({ length: 12 }, (_, nth) => ({ atMs: startMs + nth * 1000, name, ...more }));
const fails = { reply: { rcode: RCODE.SERVFAIL, tookMs: 5 } };
const denied = { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } };

test('if all external names fail and cluster names do not, the upstream is unusable', async () => {
  const found = await findingOf('ND4002', [
    ...each('web.shop.svc.cluster.local.', { address: '10.96.3.7' }),
    ...each('www.example.org.svc.cluster.local.', denied, 100),
    ...each('www.example.org.', fails, 200),
    ...each('www.shop.example.', fails, 300),
  ]);
  assert.match(found?.title ?? '', /cluster names do not: the upstream is unusable$/);
});

test('if only names in one external zone fail, the zone is named, and not the upstream', async () => {
  const zone = [
    ...each('eid.register.gov.example.', fails, 200),
    ...each('portal.register.gov.example.', fails, 300),
  ];
  const inside = [
    ...each('web.shop.svc.cluster.local.', { address: '10.96.3.7' }),
    ...each('eid.register.gov.example.svc.cluster.local.', denied, 100),
  ];
  const alone = await findingOf('ND4002', [...inside, ...zone]);
  assert.equal(
    alone?.title,
    'Names in register.gov.example fail with SERVFAIL, while cluster names do not',
  );
  assert.match(alone.seen.join(' '), /If names in other zones also fail, forwarding/);
  const others = ['www.example.org.', 'api.example.net.', 'db.example.com.'].flatMap((name, nth) =>
    each(name, { address: '192.0.2.5' }, 400 + nth),
  );
  const beside = await findingOf('ND4002', [...inside, ...zone, ...others]);
  assert.match(
    beside?.title ?? '',
    /^Names in register\.gov\.example fail .* while other external/,
  );
});

test('names that fail by turns at one address show one bad server behind it', async () => {
  const turns = ['nas', 'gw'].flatMap((host) =>
    each(`${host}.lab.example.net.`, fails).map((query, nth): Given => {
      const atMs = query.atMs + (host === 'gw' ? 300 : 0);
      const isFine = (nth * 7 + host.length) % 3 === 0;
      return isFine ? { atMs, name: query.name, address: '192.0.2.5' } : { ...query, atMs };
    }),
  );
  const last = each('nas.', { reply: { rcode: RCODE.REFUSED } }, 600);
  const found = await findingOf('ND4002', [...turns, ...last]);
  assert.match(found?.title ?? '', /^One of the servers behind 10\.96\.0\.10 fails/);
  assert.equal(await findingOf('ND4010', [...turns, ...last]), undefined);
});
