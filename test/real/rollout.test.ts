/** The arguments and predictions of `ndots rollout`. rollout.long.test.ts plays the rollouts. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { noLab } from '../kit/lab.ts';

const run = (...words: string[]) =>
  spawnSync(process.execPath, ['src/faces/cli/main.ts', 'rollout', ...words], { encoding: 'utf8' });

describe('ndots rollout', () => {
  test('predicts without any rights', () => {
    const { stdout, status } = run('rehearse', '--model', '--propagation', '2s', '--rate', '300');
    assert.equal(status, 0, stdout);
    assert.match(stdout, /without lameduck[^]*300\/s × 2 s[^]*÷ 3 pods, × 2[^]*lameduck 5 s/);
  });

  test('predicts the loss of kubeadm’s Deployment, and none with a quicker probe', () => {
    const kubeadm = ['--max-unavailable', '1', '--ports', 'random', '--rate', '300'];
    const { stdout } = run('rehearse', '--model', '-o', 'json', ...kubeadm);
    const [{ acts }] = JSON.parse(stdout) as [{ acts: { kind: string; title: string }[] }];
    assert.deepEqual(
      acts.map(({ kind, title }) => `${kind}: ${title}`),
      [
        'flaw: without lameduck',
        'flaw: lameduck 5 s, unready 30 s after SIGTERM',
        'cure: lameduck 5 s, unready 2 s after SIGTERM',
      ],
    );
  });

  const mistakes: readonly (readonly [words: readonly string[], message: RegExp])[] = [
    [[], /which action/],
    [['rehers'], /Did you mean rehearse/],
    [['rehearse', 'x'], /accepts only options/],
    [['rehearse', '--lameduck', 'long'], /--lameduck takes a time/],
    [['rehearse', '--pods', '0'], /--pods/],
    [['rehearse', '--ports', 'some'], /--ports takes a whole number/],
    [['rehearse', '--ports', 'random'], /only be predicted/],
  ];
  for (const [words, message] of mistakes)
    test(`rollout ${words.join(' ')}`, () => {
      const { stderr, status } = run(...words);
      assert.equal(status, 3);
      assert.match(stderr, message);
    });

  test('a play of a minute is announced with its time', { skip: noLab ?? false }, async () => {
    const played = spawn(process.execPath, ['src/faces/cli/main.ts', 'rollout', 'rehearse']);
    const exited = once(played, 'exit');
    const [said] = (await once(played.stderr, 'data')) as [Buffer];
    played.kill('SIGINT');
    await exited;
    assert.match(String(said), /takes about \d+ s; --model predicts it at once/);
  });
});
