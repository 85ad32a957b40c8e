import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const REFUSED = 5;

/**
 * A forwarder whose upstream takes 1.5 s. From second 10 on, an importer sends 40 queries a second. @param isRefused
 * the number of waiting queries, and the query's number
 */
async function findings(isRefused: (waiting: number, nth: number) => boolean) {
  const state = { waiting: [] as number[] };
  let nth = 0;
  const packets = Array.from({ length: 30 }, (_, second) => {
    const count = second < 10 ? 4 : 40;
    return Array.from({ length: count }, (__, turn) => {
      nth++;
      const ms = second * 1000 + (turn * 990) / count;
      const isImporter = second >= 10 && turn % 10 !== 0;
      const way = ends(isImporter ? '10.244.1.66' : '10.244.1.7', 20_000 + nth, '10.244.2.5');
      const name = isImporter ? `n${nth}.vendor.example.` : `www${nth % 3}.example.org.`;
      state.waiting = state.waiting.filter((end) => end > ms);
      if (isRefused(state.waiting.length, nth))
        return asked(ms, way, name, nth, { rcode: REFUSED, tookMs: 0.2 });
      state.waiting.push(ms + 1500);
      return asked(ms, way, name, nth, { tookMs: 1500 });
    }).flat();
  });
  return (await examine(inOrder(packets))).findings;
}

test('refusals only while 20 queries wait show a limit, and name the client that uses it up', async () => {
  const [first] = await findings((waiting) => waiting >= 20);
  assert.equal(first?.code, 'ND4010');
  assert.match(first.title, /limit on waiting queries/);
  assert.match(first.seen.join(' '), /20 is the most that ever waited/);
  assert.match(first.seen.join(' '), /10\.244\.1\.66 sends \d+ %/);
});

test('refusals regardless of waiting queries are not a limit on them', async () => {
  for (const { code, seen } of await findings((_, nth) => nth % 2 === 0))
    assert.doesNotMatch(`${code} ${seen.join(' ')}`, /most that ever waited/);
});

/** A job looks up addresses in the whole capture. @param isRefused the number of waiting queries, and the query's number */
async function ofFlood(isRefused: (waiting: number, nth: number) => boolean) {
  let waiting: number[] = [];
  const packets = Array.from({ length: 2000 }, (_, nth) => {
    const [ms, way] = [nth * 10, ends('10.244.1.66', 20_000 + nth)];
    const name = `${nth % 250}.${nth >> 8}.0.203.in-addr.arpa.`;
    waiting = waiting.filter((end) => end > ms);
    if (isRefused(waiting.length, nth))
      return asked(ms, way, name, nth, { type: 'PTR', rcode: REFUSED, tookMs: 0.3 });
    waiting.push(ms + 1500);
    return asked(ms, way, name, nth, { type: 'PTR', rcode: 3, tookMs: 1500 });
  });
  return (await examine(inOrder(packets))).findings;
}

test('a flood as long as the capture shows its limit by the queries that were accepted first', async () => {
  const [first] = await ofFlood((waiting) => waiting >= 60);
  assert.equal(first?.code, 'ND4010');
  assert.match(first.title, /limit on waiting queries/);
  assert.match(first.seen.join(' '), /10\.244\.1\.66 sends 100 %/);
  assert.match(first.seen.join(' '), /in-addr\.arpa/);
});

test('a server that refuses every other query of a flood has no such limit', async () => {
  for (const { seen } of await ofFlood((_, nth) => nth % 2 === 0))
    assert.doesNotMatch(seen.join(' '), /most that ever waited/);
});
