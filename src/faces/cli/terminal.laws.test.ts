import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { coloured, harmless, printedLength } from './terminal.ts';

/** Untrusted text: words, control sequences and hidden characters. */
const foreign = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\u001b[32m', '\u001b[0m', '\u001b[8m', '\u001b[0123456789abcdef;31m'),
      fc.constantFrom(
        '\u001b]0;title\u0007',
        '\u009b2J',
        '\r',
        '\u202e',
        '\u2066',
        '\u200b',
        '\ufeff',
      ),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
// eslint-disable-next-line no-control-regex -- matches our own escapes
const ours = /\u001b\[\d+m/g;

test('a terminal interprets only our own colours in the output', () => {
  fc.assert(
    fc.property(foreign, foreign, fc.integer({ min: 1, max: 36 }), (plain, inColour, sgr) => {
      const text = harmless(`${plain}${coloured(inColour, sgr)}${plain}`);
      assert.equal(text.match(ours)?.length ?? 0, inColour === '' ? 0 : 2);
      assert.doesNotMatch(text.replace(ours, ''), hidden);
      assert.equal(harmless(text.replace(ours, '')), text.replace(ours, ''));
    }),
  );
});

test('colours have no width', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, other) =>
      assert.equal(printedLength(`${one}${coloured(other, 31)}`), one.length + other.length),
    ),
  );
});
