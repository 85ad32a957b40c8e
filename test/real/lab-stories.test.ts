import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { modelStory } from '../../src/tools/lab/play.ts';
import { stories } from '../../src/tools/lab/stories.ts';
import { broken, cannotPlay, play } from '../kit/lab.ts';

/** Only the quick stories. lab-stories.long.test.ts plays all of them. */
const played: ReadonlySet<string> = new Set(['twelve-queries', 'service-shares']);

describe('stories', () => {
  for (const story of stories) {
    if (played.has(story.name)) {
      test(`${story.name}: ${story.title}`, { skip: cannotPlay(story) }, async () => {
        const outcome = await play(story.name);
        assert.equal(outcome.how, 'real');
        assert.deepEqual(broken(outcome), []);
      });
    }

    if (story.model !== null) {
      test(`${story.name} on its model`, async () => {
        const outcome = await modelStory(story);
        assert.deepEqual(broken(outcome!), []);
      });
    }

    test(`${story.name} has a page, which docs/lab.md names`, () => {
      assert.ok(existsSync(`docs/lab/${story.name}.md`));
      assert.ok(readFileSync('docs/lab.md', 'utf8').includes(`(lab/${story.name}.md)`));
    });
  }
});
