import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileLinear } from './linear-pattern.ts';
import { compileRe2, PatternError } from './re2.ts';

/** Expressions of few characters, so that texts match them. */
const { pattern } = fc.letrec((tie) => ({
  atom: fc.oneof(
    fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\.', '\\d', '[[:alpha:]-]', '-', '\\w', '😀', '(?i:A)', '\\x61'),
    fc.constantFrom('^', '$', '\\b', '\\B'),
    fc.tuple(fc.constantFrom('(', '(?:', '(?i)('), tie('pattern')).map(([open, inner]) => (open === '(?i)(' ? `(?i:(${String(inner)}))` : `${open}${String(inner)})`)),
  ),
  piece: fc.tuple(tie('atom'), fc.constantFrom('', '', '*', '+', '?', '*?', '+?', '{2}', '{1,3}', '{2,}')).map(([atom, many]) => `${String(atom)}${many}`),
  pattern: fc
    .array(fc.array(tie('piece'), { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join('')), { minLength: 1, maxLength: 2 })
    .map((choices) => choices.join('|')),
}));
const text = fc.array(fc.constantFrom('a', 'b', 'A', '.', '-', '1', '\n', '😀'), { maxLength: 8 }).map((chars) => chars.join(''));

describe('matching in linear time', () => {
  test('what matches, and where, is the same as with JavaScript', () => {
    fc.assert(
      fc.property(pattern, text, (source, subject) => {
        const wanted = compileRe2(String(source)).exec(subject);
        const linear = compileLinear(String(source));
        const found = linear.exec(subject);
        assert.equal(found?.groups[0], wanted?.[0]);
        assert.equal(linear.test(subject), wanted !== null);
        if (wanted !== null) assert.equal(linear.groupCount, wanted.length - 1);
      }),
      { numRuns: 3000 },
    );
  });

  test('whatever the expression, it is read or refused', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12, unit: fc.constantFrom(...'ab()[]{}|*+?\\^$.-:,dwPsQEzA1<>') }), text, (source, subject) => {
        let expression: RegExp;
        try {
          expression = compileRe2(source);
        } catch (error) {
          assert.ok(error instanceof PatternError);
          return;
        }
        assert.equal(compileLinear(source).test(subject), expression.test(subject), source);
      }),
      { numRuns: 3000 },
    );
  });
});
