import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLAG, RCODE, TYPE } from '../../../server/wire/iana.ts';
import type { DnsRecord } from '../../../server/wire/message.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { addressRecord } from '../../../../test/kit/packets.ts';
import { examine } from '../../../../test/kit/story.ts';

const LAME = '198.51.100.53';
const FINE = '203.0.113.53';
const flags = FLAG.QR;
const query = { flags: 0 };
const server = (zone: string, target: string): DnsRecord => ({
  ...{ name: zone, type: TYPE.NS, class: 1, ttl: 30, data: { target } },
});

/** A resolver asks the parent zone, and then servers of the zone, without RD. */
const resolved = (zone: string, all: readonly string[]): Given[] =>
  Array.from({ length: 12 }, (_, i) => {
    const step = { name: `h${i}.${zone}`, client: '172.31.4.2' };
    const referral = {
      ...{ flags, query, authority: all.map((_, nth) => server(zone, `ns${nth}.${zone}`)) },
      additional: all.map((each, nth) => addressRecord(`ns${nth}.${zone}`, each)),
    };
    return [
      { ...step, atMs: i * 900, server: '198.41.0.4', reply: referral },
      { ...step, atMs: i * 900 + 2, server: LAME, reply: { flags, query, rcode: RCODE.REFUSED } },
      ...(all.includes(FINE)
        ? [{ ...step, atMs: i * 900 + 4, server: FINE, address: '192.0.2.8', reply: { query } }]
        : []),
    ];
  }).flat();

test('a server that refuses the zones delegated to it is named with these; referrals to a resolver are right', async () => {
  const all = [...resolved('partner.example.', [FINE, LAME]), ...resolved('old.example.', [LAME])];
  const { findings } = await examine(given([...others(20), ...all]));
  const [found] = findings;
  assert.match(found?.title ?? '', /lame delegation/);
  assert.match(
    found!.seen[0]!,
    /198\.51\.100\.53 refused 24 .* partner\.example\., old\.example\.$/,
  );
  assert.match(
    found!.seen.join(' '),
    /partner\.example\. is delegated to .*, and 203\.0\.113\.53 answers/,
  );
  assert.match(found!.seen.join(' '), /old\.example\. is delegated to 198\.51\.100\.53 only/);
  assert.deepEqual(
    findings.filter(({ code }) => code === 'ND3036'),
    [],
  );
});
