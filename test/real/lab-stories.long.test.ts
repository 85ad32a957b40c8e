import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stories } from '../../src/tools/lab/stories.ts';
import { broken, cannotPlay, play } from '../kit/lab.ts';

/** CoreDNS's program, to be played with as well. */
const coredns = process.env['COREDNS'];

describe('every story goes as it is told', () => {
  for (const story of stories) {
    test(`${story.name}: ${story.title}`, { skip: cannotPlay(story) }, async () => {
      assert.deepEqual(broken(await play(story.name)), []);
    });

    const skip = coredns === undefined ? 'COREDNS names no CoreDNS' : cannotPlay(story);
    test(`${story.name}, with CoreDNS`, { skip }, async () => {
      assert.deepEqual(broken(await play(story.name, '--server', `coredns=${coredns}`)), []);
    });
  }
});
