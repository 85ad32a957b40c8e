import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingOf, type Given } from '../../../../test/kit/given-answers.ts';

/** @param addressAt the address of the nth answer; even ones come from 10.0.0.2 if `servers` is 2 */
const asked = (addressAt: (nth: number) => string, servers: 1 | 2): Given[] =>
  Array.from({ length: 12 }, (_, i) => ({
    ...{ atMs: i * 1000, name: 'api.example.com.', address: addressAt(i), ttl: 1 },
    server: servers === 2 && i % 2 === 0 ? '10.0.0.2' : '10.0.0.3',
  }));
const byTurns = (i: number): string => (i % 2 === 0 ? '10.30.0.15' : '203.0.113.200');

test('upstreams of which one gives private and the other public addresses disagree', async () => {
  const found = await findingOf('ND8008', asked(byTurns, 2));
  assert.equal(found?.severity, 'critical');
  assert.match(
    found.seen.join(' '),
    /10\.0\.0\.2 returned 10\.30\.0\.15 .*10\.0\.0\.3 returned 203/,
  );
  assert.match(found.seen.join(' '), /Each server always returns the same/);
});

test('one server that alternates is reported; one whose answer changed once is not', async () => {
  assert.match(
    (await findingOf('ND8008', asked(byTurns, 1)))!.seen.join(' '),
    /alternates between/,
  );
  const moved = asked((i) => (i < 6 ? '10.30.0.15' : '203.0.113.200'), 1);
  assert.equal(await findingOf('ND8008', moved), undefined);
});

test('two public addresses that alternate are not a split horizon', async () => {
  const both = (i: number): string => (i % 2 === 0 ? '203.0.113.1' : '203.0.113.2');
  assert.equal(await findingOf('ND8008', asked(both, 2)), undefined);
});
