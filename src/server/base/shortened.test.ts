import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from './problem.ts';
import { clipped, shortened } from './shortened.ts';

test('a word of several megabytes is shown as its beginning and its length', () => {
  const text = shortened(`unknown option "${'x'.repeat(2_000_000)}" of it`);
  assert.match(text, /^unknown option "x{119}… \(2000002 characters\) of it$/);
});

test('a line of many words is cut, and other lines are unchanged', () => {
  const text = shortened(`first\n${'word '.repeat(100_000)}\nlast`);
  assert.match(text, /^first\nword [^\n]{0,3100}… \(500000 characters\)\nlast$/);
});

test('no character is cut in half', () => {
  assert.ok(shortened(`x${'😀'.repeat(2000)}`).isWellFormed());
});

test('ordinary message contents stay, including a path of hundreds of characters', () => {
  const text = `cannot read ${'/folder'.repeat(70)}: no such file or directory`;
  assert.equal(shortened(text), text);
});

test('a problem is printed this way', () => {
  const long = 'y'.repeat(1_000_000);
  const problem = new Problem({
    code: 'usage',
    text: `"${long}" is none`,
    hint: long,
    remedy: long,
    place: { file: 'f', line: 1, column: 1 },
  });
  assert.ok(problem.print().length < 1000);
});

test('a clipped line has the allowed length and no half characters', () => {
  assert.equal(clipped('abcd', 4), 'abcd');
  assert.equal(clipped('abcde', 4), 'abc…');
  assert.equal(clipped('ab\u{1f600}cd', 4), 'ab…');
});
