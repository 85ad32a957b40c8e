import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

/** Lookups of an external name with three search domains, of which only the last query succeeds. */
const searches = (count: number): Given[] =>
  Array.from({ length: count }, (_, nth) =>
    ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''].map((domain, step) => {
      const query = { atMs: nth * 1000 + step, name: `api.example.com.${domain}` };
      return domain === ''
        ? { ...query, address: '192.0.2.7' }
        : { ...query, reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } };
    }),
  ).flat();

test('the title says “most” only if more than half of the queries fail in the search path', async () => {
  assert.match((await findingOf('ND2001', searches(40)))?.title ?? '', /^Most queries/);
  const rest = [...searches(40), ...others(180)];
  assert.match((await findingOf('ND2001', rest))?.title ?? '', /^Many queries/);
});

test('a client that sends most of these queries is named if there are others', async () => {
  const busy = searches(40).map((each) => ({ ...each, client: '10.244.1.66' }));
  const quiet = others(40).map((each) => ({ ...each, client: '10.244.1.7' }));
  const seen = async (all: readonly Given[]) => (await findingOf('ND2001', all))?.seen[0] ?? '';
  assert.match(await seen([...busy, ...quiet]), /10\.244\.1\.66 sent 100 % of them\.$/);
  assert.doesNotMatch(await seen(busy), /of them/);
});
