import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runCommand } from '../../../../test/kit/trace-command.ts';
import { size } from './size.ts';

const cluster = ['--nodes', '120', '--cores', '1920'];
const linear = 'linear: \'{"nodesPerReplica": 10}\'\n';

const sized = (params: string) => runCommand(size, [...cluster, '--params', '-'], {}, {}, params);

describe('the ConfigMap of an autoscaler', () => {
  for (const [title, params] of [
    ['as kubectl prints it', `apiVersion: v1\nkind: ConfigMap\ndata:\n  ${linear}`],
    ['without its kind', `data:\n  ${linear}`],
    ['its data alone', linear],
  ] as const)
    test(title, async () => {
      assert.equal((await sized(params)).out, '12 replicas: 10 nodes per replica\n');
    });

  test('messages refer to standard input by that name', async () => {
    const { code, err } = await sized('cubic: {}\n');
    assert.equal(code, 2);
    assert.match(
      err,
      /^ndots size: standard input has cubic, but must have either linear or ladder/,
    );
  });
});

describe('the command line', () => {
  for (const [given, missing] of [
    ['--nodes', '--cores'],
    ['--cores', '--nodes'],
  ] as const)
    test(`${given} without ${missing} says which one is missing`, async () => {
      const { code, err } = await runCommand(size, [given, '120']);
      assert.equal(code, 3);
      assert.match(err, new RegExp(`${given} needs ${missing}`));
    });
});
