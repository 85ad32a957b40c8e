import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { rollout } from '../rollout/rollout.ts';

test('while a story runs, its name and expected duration are shown', async () => {
  const told: string[] = [];
  const words = ['rehearse', '--model', '--propagation', '2s'];
  await runCommand(rollout, words, {}, { progress: (text) => told.push(text) });
  assert.equal(told[0], 'playing rollout-rehearsal, 1 of 1, 0 s');
});
