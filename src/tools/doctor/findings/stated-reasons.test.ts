import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EDE, FLAG, OPTION, RCODE } from '../../../server/wire/iana.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const zone = 'signed.example.';
const EARLY = `validation failure <${'a'.repeat(60)}.${zone} A IN>: key for validation ${zone} is marked as invalid because of a previous validation failure: signature before inception date from 192.0.2.53`;

/** A resolver that calls the zone bogus, and another one that answers with these flags. */
const resolvers = (text: string, flags: number): Given[] =>
  Array.from({ length: 40 }, (_, nth): Given => {
    const each = { atMs: nth * 500, name: `www${nth % 4}.${zone}` };
    if (nth % 2 === 0)
      return {
        ...each,
        ...{ server: '10.10.0.53', address: '192.0.2.1' },
        reply: { flags: FLAG.QR | FLAG.RD | FLAG.RA | flags },
      };
    const data = Uint8Array.from([0, EDE.DNSSEC_BOGUS, ...Buffer.from(text)]);
    const options = [{ code: OPTION.EDE, data }];
    const edns = { udpSize: 1232, version: 0, dnssecOk: true, options };
    return {
      ...each,
      ...{ name: `www${(nth - 1) % 4}.${zone}`, server: '10.10.0.54' },
      reply: { rcode: RCODE.SERVFAIL, edns, query: { edns } },
    };
  });

test('a resolver that calls signatures early, while another one validates them, has a wrong clock', async () => {
  const found = await findingOf('ND4035', [...others(20), ...resolvers(EARLY, FLAG.AD)]);
  assert.match(found?.title ?? '', /its clock is behind: 10\.10\.0\.54/);
  assert.match(found!.fix[0]!, /clock of 10\.10\.0\.54/);
  assert.match(found!.seen.join(' '), /signature before inception date/);
  assert.match(found!.seen.join(' '), /10\.10\.0\.53 validates the same names/);
});

test('a resolver that calls signatures early may be right if no other resolver validates them', async () => {
  const found = await findingOf('ND4035', [...others(20), ...resolvers(EARLY, 0)]);
  assert.match(found?.title ?? '', /rejects a zone’s signatures/);
});

test('a resolver that calls signatures bogus for another reason does not show its clock', async () => {
  const found = await findingOf('ND4035', [...others(20), ...resolvers('no DS', FLAG.AD)]);
  assert.match(found?.title ?? '', /rejects a zone’s signatures/);
});
