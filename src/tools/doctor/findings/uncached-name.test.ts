import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { findingOf, given, others, type Given } from '../../../../test/kit/given-answers.ts';

const asked = (ttl: number, tookMs: number): Given[] =>
  Array.from({ length: 20 }, (_, i) => ({
    ...{ atMs: i * 1000, name: 'rates.example.com.', address: '192.0.2.1', ttl },
    reply: { tookMs },
  }));

test('a name with TTL 0 that is slow each time is reported, unlike cached names', async () => {
  const found = await findingOf('ND4020', [...asked(0, 250), ...others(30)]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.seen[0]!, /20 answers for rates\.example\.com\. A had TTL 0 and took 250 ms/);
});

test('a quick name with TTL 0, and a slow one with a TTL, are not', async () => {
  assert.equal(await findingOf('ND4020', [...asked(0, 1), ...others(30)]), undefined);
  assert.equal(await findingOf('ND4020', [...asked(5, 250), ...others(30)]), undefined);
});

test('at an upstream, these are most of the queries, because caches answer the others', async () => {
  const often = [0, 300, 600].flatMap((ms) =>
    asked(0, 150).map((each) => ({ ...each, atMs: each.atMs + ms, client: '10.0.1.11' })),
  );
  const found = await findingOf('ND4020', [...often, ...others(3)]);
  assert.match(found?.seen.join(' ') ?? '', /10\.0\.1\.11\. Other names can be cached/);
  assert.match(
    (await findingOf('ND4020', [...asked(1, 250), ...others(30)]))?.title ?? '',
    /TTL of 1 s/,
  );
});

test('a name with TTL 0 that all slow lookups are for is the cause, and not a slow server', async () => {
  // Lookups that overlap would count as one.
  const slow = asked(0, 1300).map((each) => ({ ...each, atMs: 2 * each.atMs }));
  const all = [...slow, ...slow.map((each) => ({ ...each, client: '10.244.1.8' })), ...others(30)];
  const [first, ...rest] = (await examine(given(all))).findings;
  assert.equal(first?.code, 'ND4020');
  assert.equal(first.severity, 'critical');
  assert.match(first.title, /rates\.example\.com/);
  assert.ok(!rest.some(({ code }) => code === 'ND4003'));
});
