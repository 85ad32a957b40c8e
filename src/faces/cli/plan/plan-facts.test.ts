import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NameFacts } from './plan-facts.ts';

test('each external name has its own address, regardless of their number', async () => {
  const none = { clients: new Map(), searches: new Map(), names: new Map(), listed: new Map() };
  const seen = { ...none, explained: false };
  const facts = new NameFacts(seen, null, 'cluster.local');
  const addresses = new Set<string>();
  const count = 140_000;
  for (let i = 0; i < count; i++) {
    const { rules } = await facts.scriptFor(`n${i}.example.org`, [], true);
    addresses.add(JSON.stringify(rules[0]!.answers));
  }
  assert.equal(addresses.size, count);
});
