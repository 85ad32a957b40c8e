import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stories } from '../../src/tools/lab/stories.ts';
import { broken, cannotPlay, play } from '../kit/lab.ts';

/** A CoreDNS program. If it is set, the stories are also played with it. */
const coredns = process.env['COREDNS'];

describe('every story goes as documented', () => {
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
