import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

/** Lookups with two search domains and as written. @param isThere below the first domain */
const walks = (stem: string, isThere = false): Given[] =>
  Array.from({ length: 5 }, (_, nth) =>
    (isThere
      ? ['shop.svc.cluster.local.']
      : ['shop.svc.cluster.local.', 'svc.cluster.local.', '']
    ).map((domain, step): Given => {
      const query = { atMs: nth * 4000 + step, name: `${stem}${domain}` };
      const authority = [soa(domain === '' ? 'root-zone.' : 'cluster.local.')];
      return isThere
        ? { ...query, address: '10.96.3.7' }
        : { ...query, reply: { rcode: RCODE.NXDOMAIN, authority } };
    }),
  ).flat();

test('a few lookups of a misspelled namespace are reported; names that are found or optional are not', async () => {
  const found = await findingOf('ND2008', [...others(20), ...walks('auth.platfrom.')]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.seen.join(' '), /auth\.platfrom\. \(5 lookups\)/);
  const well = [...others(20), ...walks('db.', true), ...walks('_ta-4f66.')];
  assert.equal(await findingOf('ND2008', well), undefined);
});
