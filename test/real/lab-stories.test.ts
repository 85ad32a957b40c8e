import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import { stories } from '../../src/lab/stories.ts';
import { broken, cannotPlay, play } from '../kit/lab.ts';

/** CoreDNS's program, to be played with as well. */
const coredns = process.env['COREDNS'];

describe('stories', () => {
  for (const story of stories) {
    const isLong = story.seconds > 20;
    test(
      `${story.name}: ${story.title}`,
      { skip: isLong ? 'npm run test:long' : cannotPlay(story) },
      async () => {
        const outcome = await play(story.name);
        assert.equal(outcome.how, 'real');
        assert.deepEqual(broken(outcome), []);
      },
    );

    if (story.model !== null) {
      test(`${story.name} on its model`, async () => {
        const outcome = await play(story.name, '--model');
        assert.equal(outcome.how, 'model');
        assert.deepEqual(broken(outcome), []);
      });
    }

    test(`${story.name} has a page`, () => {
      assert.ok(existsSync(`docs/lab/${story.name}.md`));
    });
  }

  const noCoredns = coredns === undefined ? 'COREDNS names no CoreDNS' : false;
  test('twelve-queries with CoreDNS', { skip: noCoredns }, async () => {
    assert.deepEqual(broken(await play('twelve-queries', '--server', `coredns=${coredns}`)), []);
  });
});
