import assert from 'node:assert/strict';
import { test } from 'node:test';
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
