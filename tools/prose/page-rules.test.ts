/** Tests the layout rules of pages: openings, line widths and cell lengths. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pageFaults, type Opening } from './page-rules.ts';

const rules = (page: string, opening: Opening = 'free'): readonly string[] =>
  pageFaults(page, opening).map(({ line, rule }) => `${line} ${rule}`);

describe('a page', () => {
  const good = '# A\n\nShows a thing.\n\n```sh\nndots a\n```\n';

  test('begins with its purpose in one line and a block with its command', () => {
    assert.deepEqual(rules(good, 'purpose and command'), []);
    assert.deepEqual(rules('# A\n\n```sh\nndots a\n```\n', 'purpose'), ['3 opening']);
    assert.deepEqual(rules('# A\n\nShows\na thing.\n', 'purpose'), ['3 opening']);
    assert.deepEqual(rules('# A\n\nShows a thing.\n\nText.\n', 'purpose'), []);
    assert.deepEqual(rules('# A\n\nShows a thing.\n\nText.\n', 'purpose and command'), [
      '5 opening',
    ]);
    assert.deepEqual(rules('# A\n\n## B\n', 'purpose and command'), ['3 opening']);
    assert.deepEqual(rules('# A\n\n## B\n', 'free'), []);
  });

  test('has no line over 120 columns, code included, links and tables excepted', () => {
    const wide = 'ab '.repeat(40);
    assert.deepEqual(rules(`${wide}a\n`), ['1 wide line']);
    assert.deepEqual(rules(`${wide}\n`), []);
    assert.deepEqual(rules(`\`\`\`\n${wide}a\n\`\`\`\n`), ['2 wide line']);
    assert.deepEqual(rules(`${'a'.repeat(130)}\n| ${wide} | b |\n`), []);
  });

  test('has no table cell with more than two sentences', () => {
    assert.deepEqual(rules('| One. Two. | a |\n'), []);
    assert.deepEqual(rules('| One. Two. Three. | a |\n'), ['1 long cell']);
    assert.deepEqual(rules('| One. Two. `three` is it. | a |\n'), ['1 long cell']);
    const written = '<!-- Written by tools/a.ts from here on. -->';
    assert.deepEqual(rules(`${written}\n| One. Two. Three. | a |\n`), ['2 long cell']);
  });

  test('has no sentence that starts in prose and ends after a code block', () => {
    assert.deepEqual(rules('This command\n\n```sh\na\n```\n\nserves.\n'), [
      '3 sentence ends in code',
    ]);
    assert.deepEqual(rules('Run:\n\n```sh\na\n```\n'), []);
    assert.deepEqual(rules('# Try it\n\n```sh\na\n```\n'), []);
  });
});
