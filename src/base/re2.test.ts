import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRe2, PatternError } from './re2.ts';

/** Pattern, texts that match, texts that do not: what Go's regexp package says. */
const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['^.* i/o timeout$', ['read udp 1.2.3.4: i/o timeout'], ['i/o timeout!', 'a\nb i/o timeout']],
  ['a.c', ['abc', 'a\rc'], ['a\nc']],
  ['(?s)a.c', ['a\nc'], ['ac']],
  ['^b', ['b'], ['a\nb']],
  ['(?m)^b$', ['a\nb\nc'], ['ab', 'b\r']],
  ['(?i)abc|DEF', ['ABC', 'def'], ['ab']],
  ['x(?i)a|b', ['xA', 'B'], ['XA']],
  ['a(?i:b)c', ['aBc'], ['ABc', 'aBC']],
  ['(?i)a(?-i)b', ['Ab'], ['AB']],
  ['\\Aab\\z', ['ab'], ['ab\n', 'xab']],
  ['\\Qa.b\\E+', ['a.b', 'a.bbb'], ['axb']],
  ['^[[:alpha:]]+[[:^digit:]]$', ['abc!'], ['abc1']],
  ['^[]a-]+$', [']a-'], ['b']],
  ['^[^\\s]$', ['\u00a0', '\u000b'], [' ', '\t']],
  ['^\\pL\\p{Greek}$', ['aα'], ['aa', '1α']],
  ['^\\x41\\x{1F600}\\101$', ['A😀A'], ['AA']],
  ['^a{2,3}$', ['aa', 'aaa'], ['a', 'aaaa']],
  ['^a{,3}$', ['a{,3}'], ['aa']],
  ['^(?P<first>a)(?<second>b)$', ['ab'], ['b']],
  ['^.$', ['😀'], ['ab']],
  ['\\bcat\\b', ['a cat.'], ['concat']],
  ['^\\_\\-\\/$', ['_-/'], []],
];

describe('regular expressions of Go', () => {
  for (const [pattern, matching, others] of cases) {
    test(`${pattern} matches what it matches in Go`, () => {
      const expression = compileRe2(pattern);
      for (const text of matching) assert.ok(expression.test(text), JSON.stringify(text));
      for (const text of others) assert.ok(!expression.test(text), JSON.stringify(text));
    });
  }

  test('(?U) swaps greedy and lazy', () => {
    assert.equal(compileRe2('(?U)a+').exec('aaa')![0], 'a');
    assert.equal(compileRe2('(?U)a+?').exec('aaa')![0], 'aaa');
  });

  const refused: readonly (readonly [string, string])[] = [
    ['a**', 'invalid nested repetition operator: `**`'],
    ['*a', 'missing argument to repetition operator: `*`'],
    ['(?=x)', 'invalid or unsupported Perl syntax: `(?=`'],
    ['(?<!x)', 'invalid or unsupported Perl syntax: `(?<!`'],
    ['(a)\\1', 'invalid escape sequence: `\\1`'],
    ['[a-\\d]', 'invalid character class range: `a-\\d`'],
    ['(', 'missing closing ): `(`'],
    [')', 'unexpected ): `)`'],
    ['[a', 'missing closing ]: `[a`'],
    ['a{1001}', 'invalid repeat count: `{1001}`'],
    ['a{3,2}', 'invalid repeat count: `{3,2}`'],
    ['[b-a]', 'invalid character class range'],
    ['a\\', 'trailing backslash at end of expression: ``'],
    ['\\y', 'invalid escape sequence: `\\y`'],
    ['\\p{Klingon}', 'invalid character class range: `\\p{Klingon}`'],
  ];
  for (const [pattern, reason] of refused) {
    test(`${pattern} is refused in Go's words`, () => {
      assert.throws(
        () => compileRe2(pattern),
        (error: Error) =>
          error instanceof PatternError &&
          error.message.startsWith(`error parsing regexp: ${reason}`),
      );
    });
  }
});
