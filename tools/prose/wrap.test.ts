/** Tests that wide paragraphs are rewrapped, and that nothing else on a page changes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageFaults } from './page-rules.ts';
import { wrapPage } from './wrap.ts';

const wide = `${'word '.repeat(40)}end`;

test('a wide paragraph and a wide item are filled, and the item hangs', () => {
  const page = wrapPage(`# A\n\n${wide}\n\n- ${wide}\n- b\n`);
  assert.deepEqual(pageFaults(page, 'free'), []);
  assert.match(page, /\n- word [^\n]*\n {2}word /);
  assert.equal(page.replaceAll(/\s+/g, ' '), `# A ${wide} - ${wide} - b `);
});

test('code spans are not broken, and a dash does not start a line', () => {
  const page = wrapPage(`${'word '.repeat(23)}\`some code that is long\` - ${wide}`);
  assert.match(page, /^`some code that is long` - word/m);
  assert.doesNotMatch(wrapPage(`${'abc '.repeat(29)}a - ${wide}`), /^- /m);
});

test('narrow paragraphs, tables, headings and blocks of code are unchanged', () => {
  const page = `# ${wide}\n\na\nb\n\n| ${wide} |\n\n\`\`\`\n${wide}\n\`\`\`\n`;
  assert.equal(wrapPage(page), page);
});
