import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { parseName } from './name.ts';
import { HASH_START, seedHashes } from '../base/hash.ts';
import { makeQuery } from './query.ts';

/**
 * Labels of which either leads from the state of FNV-1a that those before lead to, to the same next
 * one (Joux's construction; found by trying some ten thousand labels for each): 2^8 names with one
 * hash.
 */
const pairs: readonly (readonly [string, string])[] = [
  ['cumzfa', 'yplppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
  ['uoczfa', 'ofbppa'],
];

const names = pairs
  .reduce<string[]>(
    (all, pair) => all.flatMap((name) => pair.map((label) => `${name}${label}.`)),
    [''],
  )
  .map(parseName);

const hashOf = (name: Uint8Array): number => makeQuery(name, 1).hash;

after(() => seedHashes(HASH_START));

test('names that were made to have one hash have many once the hash begins elsewhere', () => {
  seedHashes(HASH_START);
  assert.equal(new Set(names.map(hashOf)).size, 1, 'the construction works');
  for (const seed of [1, 0x7fffffff, -5, 123_456_789]) {
    seedHashes(seed);
    const places = new Set(names.map((name) => hashOf(name) & 0xffff));
    assert.ok(places.size > 0.9 * names.length, `${places.size} places for ${names.length} names`);
  }
});
