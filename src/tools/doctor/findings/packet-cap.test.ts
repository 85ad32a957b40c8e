import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given, type Given } from '../../../../test/kit/given-answers.ts';
import { fewQueriesStories } from '../../../../test/kit/few-queries-stories.ts';
import { examine } from '../../../../test/kit/story.ts';

test('the recommended rate is below the limit that was seen, and the proof does not need AWS', async () => {
  const story = fewQueriesStories.find(({ name }) => name.startsWith('S19 a limit on packets'))!;
  const { findings } = await examine(await story.packets(1));
  const found = findings.find(({ code }) => code === 'ND4001')!;
  const recommended = Number(/max_pps (\d+)/.exec(found.fix.join(' '))?.[1]);
  // The story lets 100 queries a second through.
  assert.ok(recommended > 50 && recommended < 100, String(recommended));
  assert.doesNotMatch(found.prove, /ethtool/);
});

/** Two clients look up one name, and each gets 24 replies a second. @param ttl of the answers, seconds */
async function limitedEach(ttl: number) {
  const name = 'hooks.example.com.';
  const all = ['10.0.1.4', '10.0.1.9'].flatMap((client) =>
    Array.from({ length: 30 }, (_, second) => {
      const count = second % 5 === 4 ? 12 : 60 + 10 * (second % 3);
      return Array.from({ length: count }, (__, turn): Given => {
        const query = { atMs: second * 1000 + (turn * 990) / count, name, client };
        return turn < 24
          ? { ...query, address: '192.0.2.7', ttl, server: '10.0.0.2' }
          : { ...query, server: '10.0.0.2', reply: { cutTo: 0 } };
      });
    }).flat(),
  );
  const packets = given(all).filter(({ bytes }) => bytes.length > 28);
  return (await examine(packets)).findings.find(({ code }) => code === 'ND4001');
}

test('a limit that is the same for each of several clients is given for one', async () => {
  const found = await limitedEach(0);
  assert.match(found?.seen.join(' ') ?? '', /sent 10\.0\.1\.[49] 24 replies in each/);
  assert.match(found!.prove, /more than 24 queries a second from one address/);
  assert.doesNotMatch(found!.seen.join(' '), /still valid/);
});

test('clients that exceed a limit with repeats of a valid answer do not cache', async () => {
  const found = await limitedEach(300);
  assert.match(found?.title ?? '', /could be cached exceed a packet limit/);
  assert.match(found!.fix[0]!, /If 10\.0\.1\.4, 10\.0\.1\.9 are DNS servers, add the cache plugin/);
});
