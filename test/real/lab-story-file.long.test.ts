/** The example of a story file is played. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import type { Outcome } from '../../src/lab/story.ts';
import { broken, noLab, runLab } from '../kit/lab.ts';

const skip =
  noLab ?? (spawnSync('conntrack', ['--version']).status === 0 ? false : 'needs conntrack');

for (const mode of ['iptables', 'nftables'])
  test(`the example goes as it is told, with ${mode}`, { skip }, async () => {
    const file = 'examples/lab/story.yaml';
    const { stdout, code, stderr } = await runLab('run', '-f', file, '-o', 'json', '-m', mode);
    assert.equal(code, 0, stdout || stderr);
    const [outcome] = JSON.parse(stdout) as Outcome[];
    assert.deepEqual(broken(outcome!), []);
  });
