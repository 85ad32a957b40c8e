import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesPairs, parseSelector } from './selector.ts';

test('a label selector matches the same objects as in the API server', () => {
  const labels = { app: 'web', tier: 'front', generation: '4', empty: '' };
  const cases: readonly [string, boolean][] = [
    ['', true],
    ['app=web', true],
    ['app==web', true],
    ['app = web , tier = front', true],
    ['app=web,tier=back', false],
    ['app!=web', false],
    ['missing!=x', true],
    ['missing=x', false],
    ['empty=', true],
    ['app', true],
    ['missing', false],
    ['!missing', true],
    ['! app', false],
    ['app in (web, api)', true],
    ['app in (api)', false],
    ['missing in (api)', false],
    ['tier notin (back,middle)', true],
    ['tier notin (front)', false],
    ['missing notin (x)', true],
    ['app in (web,api),tier=front,!missing', true],
    ['kubernetes.io/name=x', false],
    ['generation>3', true],
    ['generation > 4', false],
    ['generation<5', true],
    ['missing<5', false],
    ['app>3', false],
  ];
  for (const [text, expected] of cases) {
    assert.equal(parseSelector(text)?.(labels), expected, text);
  }
});

test('a malformed selector is rejected', () => {
  const malformed = ['a in b', 'a in (b', 'a=b=c', ',', 'a,,b', 'a b', '!', 'a>(1)x', 'a>b'];
  const noLabels = [
    '/a/b',
    '-x',
    'a=-b',
    'a in (b,c!)',
    `${'a'.repeat(64)}=b`,
    'A_b/c',
    'a=b\u00fc',
  ];
  for (const text of [...malformed, ...noLabels]) {
    assert.equal(parseSelector(text), null, text);
  }
});

test("a service's selector requires every pair, and an empty one selects nothing", () => {
  assert.equal(matchesPairs({ a: '1' }, { a: '1', b: '2' }), true);
  assert.equal(matchesPairs({ a: '1', b: '3' }, { a: '1', b: '2' }), false);
  assert.equal(matchesPairs({}, { a: '1' }), false);
});
