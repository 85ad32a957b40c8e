/**
 * `ndots rollout rehearse`: predicts how many queries a rollout of the DNS Deployment loses, then plays it out in a
 * lab.
 */
import { rehearsal } from '../../../tools/lab/rehearsal.ts';
import type { Command } from '../command.ts';
import { isInside, performInside, performStories } from '../lab/lab-perform.ts';
import { parseRolloutOptions } from './rollout-options.ts';

export const rollout: Command = {
  name: 'rollout',
  async run(words, io) {
    const { times, run } = parseRolloutOptions(words);
    const story = rehearsal(times);
    if (isInside(io)) return performInside(story, run, io);
    return performStories([{ story, words: ['rollout', ...words] }], run, io);
  },
};
