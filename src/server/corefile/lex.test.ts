import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { lex } from './lex.ts';

const words = (text: string): string[] => lex(text, 'Corefile').tokens.map((token) => token.text);
const places = (text: string): [string, number, number][] =>
  lex(text, 'Corefile').tokens.map(({ text: word, place }) => [word, place.line, place.column]);
const warnings = (text: string): string[] => lex(text, 'Corefile').warnings.map(({ code }) => code);

describe('words', () => {
  test('are separated by any Unicode white space', () => {
    assert.deepEqual(
      words('a b\tc\vd\fe\u00A0f\u0085g\u2003h\u3000i\nj'),
      Array.from('abcdefghij'),
    );
  });

  test('a carriage return is dropped everywhere and does not end a word', () => {
    assert.deepEqual(words('skip those\r\nCR charac\rters\r\n'), [
      'skip',
      'those',
      'CR',
      'characters',
    ]);
  });

  test('a byte order mark at the beginning is dropped', () => {
    assert.deepEqual(places('\uFEFF.:53 {'), [
      ['.:53', 1, 1],
      ['{', 1, 6],
    ]);
  });

  test('braces are ordinary words and need white space around them', () => {
    assert.deepEqual(words('.:53{ a } }b'), ['.:53{', 'a', '}', '}b']);
  });

  test('a backslash at the end of a line does not continue it', () => {
    const { tokens } = lex('forward . \\\n 8.8.8.8', 'Corefile');
    assert.deepEqual(
      tokens.map(({ text, first }) => [text, first]),
      [
        ['forward', true],
        ['.', false],
        ['\\', false],
        ['8.8.8.8', true],
      ],
    );
  });

  test('lines and columns count from 1', () => {
    assert.deepEqual(places('a\n  b c\n\n\td'), [
      ['a', 1, 1],
      ['b', 2, 3],
      ['c', 2, 5],
      ['d', 4, 2],
    ]);
  });
});

describe('quotes', () => {
  test('preserve blanks and hash signs, and may be empty', () => {
    assert.deepEqual(words('a "b c" "" "#d"'), ['a', 'b c', '', '#d']);
  });

  test('only \\" is an escape; other backslashes stay', () => {
    assert.deepEqual(words(String.raw`A "quoted \"value\" inside" B`), [
      'A',
      'quoted "value" inside',
      'B',
    ]);
    assert.deepEqual(words(String.raw`"don't\escape" "don't\\escape" "^a\.b$"`), [
      String.raw`don't\escape`,
      String.raw`don't\\escape`,
      String.raw`^a\.b$`,
    ]);
  });

  test('two backslashes before a quote do not escape it', () => {
    assert.deepEqual(words(String.raw`"a\\" b`), [String.raw`a\\`, 'b']);
  });

  test('may span lines, and line numbers stay correct', () => {
    const { tokens } = lex('a "b\n  c" d\ne', 'Corefile');
    assert.deepEqual(
      tokens.map(({ text, place, first }) => [text, place.line, place.column, first]),
      [
        ['a', 1, 1, true],
        ['b\n  c', 1, 3, false],
        ['d', 2, 6, false],
        ['e', 3, 1, true],
      ],
    );
  });

  test('are ordinary characters inside a word, and single quotes always are', () => {
    assert.deepEqual(words(`a"b c" 'd e' \`f\``), ['a"b', 'c"', "'d", "e'", '`f`']);
  });

  test('a word ends at its closing quote, whatever follows', () => {
    assert.deepEqual(words('"a"b'), ['a', 'b']);
  });

  test('an unclosed one takes the rest of the file, with a warning', () => {
    assert.deepEqual(words('a "b\nc'), ['a', 'b\nc']);
    assert.deepEqual(words('a "'), ['a']);
    assert.deepEqual(words('"a\\'), ['a']);
    assert.deepEqual(words('"a\\\\'), ['a\\\\']);
    assert.deepEqual(warnings('a "b\nc'), ['quote-open']);
  });
});

describe('comments', () => {
  test('extend to the end of the line', () => {
    assert.deepEqual(words('a # b c "d\n#e\nf'), ['a', 'f']);
  });

  test('one that starts inside a word hides the rest of that word', () => {
    assert.deepEqual(words('a#b\nc'), ['a', 'c']);
    assert.deepEqual(warnings('a#b\nc'), []);
  });

  test('words after such a one count again, with a warning', () => {
    assert.deepEqual(words('cache 30# half a minute\nlog'), [
      'cache',
      '30',
      'half',
      'a',
      'minute',
      'log',
    ]);
    assert.deepEqual(warnings('cache 30# half a minute\nlog'), ['comment-in-word']);
    assert.deepEqual(warnings('cache 30# # fine\nlog'), []);
  });
});

test('time and memory are linear in the text, whatever it contains', () => {
  for (const piece of ['a# ', '"', '"\n', '\\"', '{ ', '}', '\r', '#', 'a\n', '""']) {
    const { tokens, warnings: found } = lex(piece.repeat(100_000), 'Corefile');
    assert.ok(tokens.length <= 200_000);
    assert.ok(found.length <= 100);
  }
});
