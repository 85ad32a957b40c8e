import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { nearest, Problem } from './problem.ts';

test('control characters in a problem are made visible and cannot affect the terminal', () => {
  const problem = new Problem({
    code: 'x',
    text: 'there is no\n"\u001b]0;mine\u0007"',
    place: { file: 'a\u009bb', line: 1, column: 1 },
    hint: 'two\n\tlines\r',
    remedy: 'Zoë',
  });
  assert.equal(
    problem.print(),
    'there is no "\\u001b]0;mine\\u0007"\n  at a\\u009bb:1:1\n  two\n\tlines\\u000d\n  Zoë',
  );
});

test('a word of a megabyte is similar to nothing, whatever its length', async () => {
  const [long, short] = ['k'.repeat(1 << 20), 'k'.repeat(1 << 17)];
  await costsAtMost(
    24,
    () => assert.equal(nearest(long, ['lookup', 'query']), null),
    () => nearest(short, ['lookup', 'query']),
  );
  assert.equal(nearest('lokup', ['lookup', 'query']), 'lookup');
});

test('a prefix of a single known word suggests that word', () => {
  const known = ['--port', '--priority', '--path'];
  assert.equal(nearest('--prio', known), '--priority');
  assert.equal(nearest('--pri', known), '--priority');
  assert.equal(nearest('kube', ['kubernetes', 'kubeconfig']), null);
  assert.equal(nearest('k', ['kubernetes']), null);
});
