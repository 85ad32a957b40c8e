import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const domains = [
  'shop.svc.cluster.local.',
  'svc.cluster.local.',
  'cluster.local.',
  'corp.example.',
  'dc1.example.',
];

/** Lookups of external names whose last two search domains are denied so late, milliseconds. */
const walks = (tookMs: number): Given[] =>
  Array.from({ length: 12 }, (_, nth) => {
    const stem = ['api.vendor.test.', 'hooks.partner.test.'][nth % 2]!;
    let atMs = nth * 2500;
    const steps = domains.map((domain): Given => {
      const isLate = domain.endsWith('.example.');
      const reply = { rcode: RCODE.NXDOMAIN, authority: [soa(domain)], ...(isLate && { tookMs }) };
      const step = { atMs, name: `${stem}${domain}`, reply };
      atMs += isLate ? tookMs + 0.3 : 1;
      return step;
    });
    return [...steps, { atMs, name: stem, address: '192.0.2.7' }];
  }).flat();

test('lookups of two thirds of a second that wait for two search domains lead to these', async () => {
  const found = await findingOf('ND2016', [...others(20), ...walks(330)]);
  assert.equal(found?.severity, 'critical');
  assert.match(found.fix[0]!, /^Remove (?:corp|dc1)\.example\., (?:corp|dc1)\.example\. from/);
  assert.equal(await findingOf('ND2016', [...others(20), ...walks(20)]), undefined);
});
