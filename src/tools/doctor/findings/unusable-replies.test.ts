import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alias as aliasOf, soa } from '../../../../test/kit/content-stories.ts';
import { addressRecord } from '../../../../test/kit/packets.ts';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';

const NAME = 'store.blob.example.net.';
const TARGET = 'store.privatelink.example.net.';
const alias = aliasOf(NAME, TARGET);

/** Queries for both families, whose AAAA replies are an alias alone. */
const lookups = (count: number): Given[] =>
  Array.from({ length: count }, (_, nth) => nth * 900).flatMap((atMs): Given[] => [
    { atMs, name: NAME, reply: { answer: [alias, addressRecord(TARGET, '192.0.2.4')] } },
    { atMs: atMs + 1, name: NAME, type: 'AAAA', reply: { answer: [alias] } },
  ]);

test('an alias without an IPv6 address is minor if the name has an IPv4 address', async () => {
  // The upstream denies the address with a SOA record, which the DNS pod leaves out.
  const upstream = Array.from({ length: 20 }, (_, nth): Given => {
    const reply = { answer: [alias], authority: [soa('example.net.')] };
    const ends = { client: '10.244.2.9', server: '10.0.0.2' };
    return { atMs: nth * 900 + 3, name: NAME, type: 'AAAA', ...ends, reply };
  });
  const found = await findingOf('ND3035', [...others(20), ...lookups(12), ...upstream]);
  assert.equal(found?.severity, 'info');
});

test('an alias without any address is one', async () => {
  const all = lookups(12).map((each) => ({ ...each, reply: { answer: [alias] } }));
  assert.equal((await findingOf('ND3035', [...others(20), ...all]))?.severity, 'critical');
});
