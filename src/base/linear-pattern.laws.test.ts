import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileLinear } from './linear-pattern.ts';
import { compileRe2, PatternError } from './re2.ts';

const single = fc.constantFrom(
  'a',
  'b',
  '.',
  '[ab]',
  '[^a]',
  '\\.',
  '\\d',
  '[[:alpha:]-]',
  '-',
  '\\w',
  'é',
  '(?i:A)',
  '\\x61',
);
const place = fc.constantFrom('^', '$', '\\b', '\\B');
const many = fc.constantFrom('', '', '*', '+', '?', '*?', '+?', '{2}', '{1,3}', '{2,}');
const repeated = fc.tuple(single, many).map((pair) => pair.join(''));

function choices(piece: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const sequence = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join(''));
  return fc.array(sequence, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('|'));
}

/** Expressions of few characters, so that texts match them: groups within groups, all of them perhaps repeated. */
function nested(depth: number): fc.Arbitrary<string> {
  if (depth === 0) return choices(fc.oneof(repeated, place));
  const group = fc
    .tuple(fc.constantFrom('(', '(?:', '(?i:'), nested(depth - 1), many)
    .map(([open, inner, times]) => `${open}${inner})${times}`);
  return choices(fc.oneof(repeated, place, group));
}

/** Groups that are not repeated: no loop can go round without taking a character. */
const flat = choices(
  fc.oneof(
    repeated,
    place,
    choices(fc.oneof(repeated, place)).map((inner) => `(${inner})`),
  ),
);

const text = fc
  .array(fc.constantFrom('a', 'b', 'A', '.', '-', '1', '\n', 'é'), { maxLength: 8 })
  .map((chars) => chars.join(''));

describe('matching in linear time', () => {
  test('where JavaScript finds a match there is one, and it begins at the same place', () => {
    fc.assert(
      fc.property(nested(2), text, (source, subject) => {
        const wanted = compileRe2(source).exec(subject);
        const linear = compileLinear(source);
        assert.equal(linear.test(subject), wanted !== null);
        const found = linear.exec(subject)?.groups[0];
        // How long it is may differ: an empty round of a loop ends it in Go and starts another attempt in JavaScript.
        if (wanted !== null)
          assert.ok(subject.slice(wanted.index).startsWith(found!), String(found));
        if (wanted !== null) assert.equal(linear.groupCount, wanted.length - 1);
      }),
      { numRuns: 2000 },
    );
  });

  test('the match and all its groups are those of JavaScript', () => {
    fc.assert(
      fc.property(flat, text, (source, subject) => {
        const wanted = compileRe2(source).exec(subject);
        assert.deepEqual(
          compileLinear(source).exec(subject)?.groups,
          wanted === null ? undefined : [...wanted],
        );
      }),
      { numRuns: 2000 },
    );
  });

  test('whatever the expression, it is read or refused', () => {
    fc.assert(
      fc.property(
        fc.string({
          maxLength: 12,
          unit: fc.constantFrom(...'ab()[]{}|*+?\\^$.-:,dwPsQEzA1<>'.split('')),
        }),
        text,
        (source, subject) => {
          let expression: RegExp;
          try {
            expression = compileRe2(source);
          } catch (error) {
            assert.ok(error instanceof PatternError);
            return;
          }
          assert.equal(compileLinear(source).test(subject), expression.test(subject), source);
        },
      ),
      { numRuns: 3000 },
    );
  });
});
