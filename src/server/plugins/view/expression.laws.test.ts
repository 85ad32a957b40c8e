import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { makeQuery } from '../../transport/query.ts';
import { parseName } from '../../wire/name.ts';
import { compileExpression } from './expression.ts';
import { ExpressionValueError } from './expression-values.ts';
import { ExpressionError } from './expression-words.ts';

const query = makeQuery(parseName('client.example.org.'), 1);
const words = [
  ...[
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    ',',
    '#',
    '?',
    ':',
    '|',
    '..',
    '+',
    '-',
    '*',
    '/',
    '%',
    '**',
    '==',
    '<',
    '&&',
    '||',
    '!',
  ],
  ...[
    'not',
    'in',
    'contains',
    'matches',
    'and',
    'or',
    '??',
    'true',
    'nil',
    "'a.'",
    "'10.0.0.0/8'",
    '1',
    '2.5',
  ],
  ...[
    'name()',
    'type()',
    'id()',
    'client_ip()',
    'incidr(',
    'len(',
    'any(',
    'map(',
    'split(',
    'metadata(',
    'let x =',
    'x',
    ';',
    '.a',
    '?.a',
    'a:',
    'sort(',
    'bitand(',
    'keys(',
    'flatten(',
  ],
];

test('any text is rejected as an expression, fails or returns a value', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words), { maxLength: 12 }), (parts) => {
      try {
        const value = compileExpression(parts.join(' ')).run(query, null);
        assert.notEqual(value, undefined);
      } catch (error) {
        assert.ok(
          error instanceof ExpressionError || error instanceof ExpressionValueError,
          String((error as Error).stack),
        );
      }
    }),
    { numRuns: 3000 },
  );
});

/** A flat sum of products, such as `1 + 2 * 3 - 4`, in the form of terms that consist of factors with their signs. */
const factor = fc.integer({ min: 0, max: 50 });
const term = fc.array(factor, { minLength: 1, maxLength: 3 });
const sum = fc.array(fc.record({ minus: fc.boolean(), term }), { minLength: 1, maxLength: 4 });

test('products bind tighter than sums, and both associate to the left', () => {
  fc.assert(
    fc.property(sum, (terms) => {
      const text = terms
        .map(({ minus, term: factors }) => `${minus ? '-' : '+'} ${factors.join(' * ')}`)
        .join(' ');
      const expected = terms.reduce(
        (total, { minus, term: factors }) =>
          total + (minus ? -1 : 1) * factors.reduce((product, one) => product * one, 1),
        0,
      );
      assert.equal(Number(compileExpression(`0 ${text}`).run(query, null)), expected);
    }),
  );
});
