import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileLinear, compilePattern } from './linear-pattern.ts';
import { PatternError } from './re2.ts';

describe('expressions that would take for ever', () => {
  const name = `${'-'.repeat(240)}.example.orx.`;
  /** Each of these takes minutes or longer where every way is tried. */
  for (const source of [
    '^(?:[^.]*)-([^.]+)+\\.(?:example|x){1,3}\\.org\\.$',
    '^(-+)+$',
    '^(-|--)*x',
    '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x$',
    '^(?:-?){100}-{100}x',
    '^-*-*-*-*-*-*-*-*x',
  ]) {
    test(`${source} says no at once`, () => assert.equal(compilePattern(source).test(name), false));
  }
});

describe('groups', () => {
  const cases: readonly (readonly [string, string, readonly (string | undefined)[]])[] = [
    ['(.*)-(us-west-1)\\.(.*)', 'a-b-us-west-1.x', ['a-b-us-west-1.x', 'a-b', 'us-west-1', 'x']],
    ['(a+?)(a*)', 'aaa', ['aaa', 'a', 'aa']],
    ['(a)|(b)', 'b', ['b', undefined, 'b']],
    ['(a|ab)(c|bcd)', 'abcd', ['abcd', 'a', 'bcd']],
    ['(?:(a)|b)+$', 'xab', ['ab', 'a']],
    ['x*', 'aaa', ['']],
    ['', 'aaa', ['']],
  ];
  for (const [source, text, groups] of cases) {
    test(`${source} on ${text}`, () => {
      assert.deepEqual(compileLinear(source).exec(text)?.groups, groups);
    });
  }

  test('groups have names in both engines', () => {
    const source = '^(?P<a>[0-9]*)-(?P<b>[0-9]*)[.]';
    for (const pattern of [
      compileLinear(source),
      compilePattern(source),
      compilePattern(`(?:${source}x*y*)`),
    ]) {
      const { named } = pattern.exec('10-20.')!;
      assert.deepEqual([named['a'], named['b']], ['10', '20']);
      assert.equal(pattern.groupCount, 2);
    }
  });

  test('an expression that unfolds to very much is refused', () => {
    assert.throws(
      () => compileLinear('((a{100}){100}){100}'),
      (error) => error instanceof PatternError && /too large/.test(error.message),
    );
  });
});
