import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, type Given } from '../../../../test/kit/given-answers.ts';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';

const path = ['shop-prod.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.'];
/** Lookups through the search path, by one client. @param foundAt the step that finds it; -1: none */
const walk = (stem: string, foundAt: number, fromMs: number): Given[] =>
  Array.from({ length: 4 }, (_, round) =>
    [...path.map((domain) => `${stem}.${domain}`), `${stem}.`]
      .slice(0, foundAt < 0 ? undefined : foundAt + 1)
      .map((name, step): Given => ({
        ...{ atMs: fromMs + round * 2000 + step * 3, name },
        ...(step === foundAt
          ? { address: '10.96.1.1' }
          : { reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] } }),
      })),
  ).flat();
const longer = ['pg.data', 'mq.data', 'api.pay'].flatMap((stem, i) => walk(stem, 1, 500 + i * 100));

test('short names that never exist, where longer ones do, show a wrong namespace', async () => {
  const short = ['orders', 'cart', 'users'].flatMap((stem, i) => walk(stem, -1, i * 100));
  const found = await findingOf('ND2014', [...short, ...longer]);
  assert.equal(found?.severity, 'critical');
  assert.match(found.seen.join(' '), /shop-prod\.svc\.cluster\.local\., the first search domain/);
});

test('one name that exists in the namespace shows that it is the right one', async () => {
  const short = ['orders', 'cart', 'users'].flatMap((stem, i) => walk(stem, -1, i * 100));
  const all = [...short, ...walk('shop', 0, 900), ...longer];
  assert.equal(await findingOf('ND2014', all), undefined);
});
