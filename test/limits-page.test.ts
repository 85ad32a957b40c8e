/** docs/limits.md has every bound of `serve`, with the defaults and metrics that are in the code. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fixedLimits, limitsPage } from '../tools/limits-page.ts';

const page = readFileSync('docs/limits.md', 'utf8');
const rows = page
  .split('\n')
  .filter((line) => /^\| .* \| (\[|flag )/.test(line))
  .map((line) => line.split(' | '));

describe('the page of limits', () => {
  test('is up to date', () => {
    assert.equal(page, limitsPage(), 'write it anew: node tools/limits-page.ts');
  });

  test('has every bound that stands in the code, which says of what it is', () => {
    const silent = fixedLimits().filter(({ text }) => text === '');
    assert.deepEqual(
      silent.map(({ file, name }) => `${file} ${name}: give it a docstring`),
      [],
    );
  });

  test('has the defaults of the pages of the plugins, and of the command line', () => {
    assert.ok(rows.length > 20);
    const help = readFileSync('src/cli/serve-options.ts', 'utf8');
    for (const [, setting = '', value = ''] of rows) {
      const name = /`([^`]+)`/.exec(setting)![1]!;
      const link = /\]\(\.\.\/([^)]+)\)/.exec(setting);
      const text = link === null ? help : readFileSync(link[1]!, 'utf8');
      const number = `(?<![\\w.])${value}(?!\\w)`;
      const said =
        link === null
          ? new RegExp(`'${name}',[^]*?\\(default ${value}[;)]`)
          : value.startsWith('by ')
            ? new RegExp(`- \`${name} .*by default`)
            : new RegExp(`- \`${name} .*${number}`);
      assert.match(text, said, `${setting} ${value}`);
    }
  });

  test('has a metric for each limit that can be set', () => {
    const without = rows.filter((cells) => !/`(?:ndots|coredns)_\w+`/.test(cells[3] ?? ''));
    assert.deepEqual(without, []);
  });

  test('names metrics that are there', () => {
    const names = new Set(page.match(/(?:ndots|coredns)_\w+/g));
    for (const name of names)
      execFileSync('git', ['grep', '-q', `'${name}'`, '--', 'src/**/*.ts'], { stdio: 'ignore' });
  });
});
