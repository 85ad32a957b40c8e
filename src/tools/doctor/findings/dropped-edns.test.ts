import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const query = { edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [] } };

/** Lookups of one pod with EDNS: external names get FORMERR, unless they are answered. */
const withEdns = (names: readonly string[], rcode: number): Given[] =>
  names.flatMap((name, i) =>
    Array.from({ length: 12 }, (_, nth): Given => ({
      ...{ atMs: nth * 900 + i * 100, name, client: '10.244.1.28' },
      ...(name.endsWith('.local.')
        ? { address: '10.96.3.7', reply: { query } }
        : { reply: { rcode, query } }),
    })),
  );

test('two external names that fail with FORMERR, always asked with EDNS, lead to EDNS and the option edns0', async () => {
  const names = ['api.example.com.', 'hooks.example.org.', 'db.shop.svc.cluster.local.'];
  const found = await findingOf('ND4009', withEdns(names, RCODE.FORMERR));
  assert.match(found?.why ?? '', /passes the client’s OPT record \(EDNS\) on to an upstream/);
  assert.match(found!.fix.join(' '), /options edns0/);
  assert.equal(
    await findingOf('ND4002', withEdns(names, RCODE.FORMERR)),
    undefined,
    'the failures are explained',
  );
  assert.equal(await findingOf('ND4009', [...others(20), ...withEdns(names, 2)]), undefined);
});
