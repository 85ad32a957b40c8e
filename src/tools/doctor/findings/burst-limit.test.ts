import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '../../../../test/kit/story.ts';
import { asked, ends, inOrder } from '../../../../test/kit/story-parts.ts';

const REFUSED = 5;

/**
 * A crawler sends 100 lookups at once every 6 s to a server whose upstream takes 80 to 200 ms. @param isRefused the
 * number of waiting queries, and the query's number
 */
async function findings(isRefused: (waiting: number, nth: number) => boolean) {
  const packets = Array.from({ length: 5 }, (_, burst) => {
    let waiting: number[] = [];
    return Array.from({ length: 100 }, (__, turn) => {
      const nth = burst * 100 + turn;
      const ms = burst * 6000 + turn * 0.3;
      const way = ends('10.244.1.66', 20_000 + nth, '10.244.2.5');
      const name = `www.shop${nth}.example.`;
      waiting = waiting.filter((end) => end > ms);
      if (isRefused(waiting.length, nth))
        return asked(ms, way, name, nth, { rcode: REFUSED, tookMs: 0.5 });
      const tookMs = 80 + ((nth * 37) % 120);
      waiting.push(ms + tookMs);
      return asked(ms, way, name, nth, { tookMs });
    }).flat();
  }).flat();
  return (await examine(inOrder([packets]))).findings;
}

test('bursts of which 25 queries are let through show the limit, the client and the size', async () => {
  const [first] = await findings((waiting) => waiting >= 25);
  assert.equal(first?.code, 'ND4010');
  assert.match(first.title, /burst of lookups exceeds the limit/);
  const seen = first.seen.join(' ');
  assert.match(seen, /10\.244\.1\.66 sent 5 bursts of about 100 queries \(100 lookups\)/);
  assert.match(seen, /about 25 were answered/);
});

test('a server that refuses three of four queries of a burst, in turn, has no such limit', async () => {
  for (const { title } of await findings((_, nth) => nth % 4 !== 0))
    assert.doesNotMatch(title, /burst/);
});

test('a limit of a few queries is not one of a forwarder', async () => {
  for (const { title } of await findings((waiting) => waiting >= 5))
    assert.doesNotMatch(title, /burst/);
});

test('names that are refused at the end of each burst, and never answered, are those of a rule', async () => {
  const packets = Array.from({ length: 800 }, (_, nth) => {
    const [burst, turn] = [Math.floor(nth / 40), nth % 40];
    const ms = burst * 8000 + turn * 0.4;
    const way = ends('10.244.1.66', 20_000 + nth, '10.244.2.5');
    return turn >= 36
      ? asked(ms, way, `ad${turn}.tracker.example.`, nth, { rcode: REFUSED, tookMs: 0.4 })
      : asked(ms, way, `www${(nth * 7) % 90}.site.example.`, nth, { tookMs: 40 + turn });
  });
  const { findings: found } = await examine(inOrder(packets));
  assert.equal(found[0]?.code, 'ND4010');
  assert.doesNotMatch(found[0].title, /burst/);
});
