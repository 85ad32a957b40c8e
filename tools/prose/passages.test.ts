/** Tests that the text of pages and sources is found with the right line numbers, and nothing else is found. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { markdownPassages, sourcePassages, type Passage } from './passages.ts';

const listed = (passages: readonly Passage[]): readonly string[] =>
  passages.map(({ kind, text, lineAt }) => `${lineAt(0)} ${kind}: ${text}`);

describe('the passages of a page', () => {
  test('are headings, paragraphs, items and cells; code is one word, and fences are left out', () => {
    const page = [
      '# The `title`',
      '',
      'One line with `some',
      'code` and a [link](a/b.md).',
      '',
      '```sh',
      'mend this',
      '```',
      '- an **item**',
      '| a cell | another |',
      '|---|---|',
    ].join('\n');
    assert.deepEqual(listed(markdownPassages(page)), [
      '1 heading: The X',
      '3 markdown: One line with X and a link.',
      '9 markdown: an item',
      '10 markdown: a cell',
      '10 markdown: another',
    ]);
  });

  test('end where generated text starts', () => {
    const page = '# A\n\nText.\n\n<!-- Written by tools/a.ts from here on. -->\n\nNobody.\n';
    assert.deepEqual(listed(markdownPassages(page)), ['1 heading: A', '3 markdown: Text.']);
  });

  test('know the line of each word', () => {
    const [, found] = markdownPassages('# A\n\nFirst `x` line\nand the second\n');
    assert.equal(found!.lineAt(found!.text.indexOf('First')), 3);
    assert.equal(found!.lineAt(found!.text.indexOf('second')), 4);
  });
});

describe('the passages of a source', () => {
  const source = [
    '/** Returns bytes. */',
    'export function a(b: string): string {',
    '  // One comment',
    '  // on two lines.',
    "  const key = 'no-prose';",
    "  return b + 'the reply is not a // comment';",
    '}',
    'export interface B {',
    '  /** A comment of a type. */',
    '  readonly c: number;',
    '}',
  ].join('\n');

  test('are comments, including those in types, and strings that are sentences', () => {
    assert.deepEqual(listed(sourcePassages(source, false)).toSorted(), [
      '1 docstring: Returns bytes.',
      '3 comment: One comment on two lines.',
      '6 string: the reply is not a // comment',
      '9 docstring: A comment of a type.',
    ]);
  });

  test('are whole messages, even across templates and lines', () => {
    const text =
      "throw Error(`${a} is no ` +\n 'name of ' + `a ${f(`the nested ${b} is read`)} zone` + '.');";
    assert.deepEqual(listed(sourcePassages(text, false)), [
      '1 string: X is no name of a X zone.',
      '2 string: the nested X is read',
    ]);
  });

  test('of tests are comments and titles, and no other strings', () => {
    const text = "test('a title is read', () => {\n  f('this is not read at all');\n});\n";
    assert.deepEqual(listed(sourcePassages(text, true)), ['1 title: a title is read']);
    assert.deepEqual(listed(sourcePassages('test(`all of ${a} is read`, f);', true)), [
      '1 title: all of X is read',
    ]);
  });
});
