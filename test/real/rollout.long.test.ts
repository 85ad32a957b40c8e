/** Rollouts lose as many queries when they are played as predicted. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import type { StoryOutcome } from '../../src/tools/lab/story.ts';
import { broken, noLab } from '../kit/lab.ts';

const skip =
  noLab ?? (spawnSync('conntrack', ['--version']).status === 0 ? false : 'needs conntrack');

for (const words of [[], ['-m', 'nftables'], ['--ports', '20', '--entries-stay']])
  test(`rollout rehearse ${words.join(' ')}`, { skip }, () => {
    const main = ['src/faces/cli/main.ts', 'rollout', 'rehearse', '-o', 'json', ...words];
    const { stdout, stderr } = spawnSync(process.execPath, main, { encoding: 'utf8' });
    const [outcome] = JSON.parse(stdout || '[]') as StoryOutcome[];
    assert.ok(outcome !== undefined, stderr);
    assert.equal(outcome.how, 'real');
    assert.deepEqual(broken(outcome), []);
  });
