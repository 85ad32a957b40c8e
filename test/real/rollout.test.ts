/** `ndots rollout`: what it takes, what it predicts; played it is in rollout.long.test.ts. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';

const run = (...words: string[]) =>
  spawnSync(process.execPath, ['src/cli/main.ts', 'rollout', ...words], { encoding: 'utf8' });

describe('ndots rollout', () => {
  test('predicts without any rights', () => {
    const { stdout, status } = run('rehearse', '--model', '--propagation', '2s', '--rate', '300');
    assert.equal(status, 0, stdout);
    assert.match(stdout, /without lameduck[^]*300\/s × 2 s[^]*÷ 3 pods, × 2[^]*lameduck 5 s/);
  });

  const mistakes: readonly (readonly [words: readonly string[], message: RegExp])[] = [
    [[], /what is to be done/],
    [['rehers'], /Did you mean rehearse/],
    [['rehearse', 'x'], /takes no words/],
    [['rehearse', '--lameduck', 'long'], /--lameduck takes a time/],
    [['rehearse', '--pods', '0'], /--pods/],
  ];
  for (const [words, message] of mistakes)
    test(`rollout ${words.join(' ')}`, () => {
      const { stderr, status } = run(...words);
      assert.equal(status, 3);
      assert.match(stderr, message);
    });
});
