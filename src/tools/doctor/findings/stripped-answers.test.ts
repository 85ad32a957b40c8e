import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, others, type Given } from '../../../../test/kit/given-answers.ts';
import { soa } from '../../../../test/kit/content-stories.ts';

const name = 'db.corp.example.';
/** A and AAAA without records. @param withSoa whether the denial of A has a SOA record */
const empty = (withSoa: boolean): Given[] =>
  Array.from({ length: 10 }, (_, i): Given[] => [
    { atMs: i * 1000, name, reply: { authority: withSoa ? [soa('corp.example.')] : [] } },
    { atMs: i * 1000 + 1, name, type: 'AAAA', reply: { authority: [soa('corp.example.')] } },
  ]).flat();
const direct = (address: string): Given => ({ atMs: 5500, name, address, server: '10.0.0.9' });

test('an empty answer without SOA, beside a denial of AAAA with one, was stripped', async () => {
  assert.equal((await findingOf('ND4042', [...empty(false), ...others(10)]))?.confidence, 0.8);
  const found = await findingOf('ND4042', [...empty(false), direct('10.30.0.20')]);
  assert.match(found!.seen.join(' '), /queried directly, 10\.0\.0\.9 returns 10\.30\.0\.20/);
});

test('a denial with a SOA record, and a name with a public address elsewhere, were not', async () => {
  assert.equal(await findingOf('ND4042', [...empty(true), ...others(10)]), undefined);
  assert.equal(await findingOf('ND4042', [...empty(false), direct('192.0.2.20')]), undefined);
});
