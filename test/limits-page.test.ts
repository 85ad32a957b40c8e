/** docs/limits.md lists every limit of `serve`, with the defaults and metrics in the code. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { loadPlugins } from '../src/server/plugins/order.ts';
import { fixedLimits, limitsPage } from '../tools/limits-page.ts';

/** Syntax placeholders for a count or a size. */
const AMOUNT = /\b(?:COUNT|SIZE|CAPACITY|MAX|MAX_SESSIONS|QUERIES|PORTS|LINES|N)\b/;
/** Settings that look like limits but restrict neither memory nor the number of waiting queries. */
const boundsNothing: ReadonlySet<string> = new Set([
  'timeouts maxtcpqueries',
  'trace zipkin_max_batch_size',
  'rrl slip-ratio',
  'kubernetes apiserver_max_inflight',
  'lkg asked',
  'forward max_idle_conns',
  'forward max_fails',
  'forward max_connect_attempts',
]);

const page = readFileSync('docs/limits.md', 'utf8');
const rows = page
  .split('\n')
  .filter((line) => /^\| .* \| (\[|flag )/.test(line))
  .map((line) => line.split(' | '));

describe('the limits page', () => {
  test('is up to date', () => {
    assert.equal(page, limitsPage(), 'write it again: node tools/limits-page.ts');
  });

  test('has every limit in the code, with its purpose', () => {
    const silent = fixedLimits().filter(({ text }) => text === '');
    assert.deepEqual(
      silent.map(({ file, name }) => `${file} ${name}: give it a docstring`),
      [],
    );
  });

  test('describes each limit in a file in different words', () => {
    const texts = fixedLimits().map(({ file, text }) => `${file}: ${text}`);
    assert.deepEqual(
      texts.filter((text, index) => texts.indexOf(text) !== index),
      [],
    );
  });

  test('has every setting of a plugin for a count or a size', async () => {
    const told = new Set(
      rows.map(([, setting = '']) => /\[(\w+)\].*`([^`]+)`/.exec(setting)?.slice(1).join(' ')),
    );
    const missing = (await loadPlugins()).flatMap(({ name, syntax }) =>
      Object.values(syntax.properties)
        .filter(({ show }) => AMOUNT.test(show))
        .map(({ words }) => `${name} ${words[0]}`)
        .filter((setting) => !told.has(setting) && !boundsNothing.has(setting)),
    );
    assert.deepEqual(missing, []);
  });

  test('has the defaults from the plugin pages and the command line', () => {
    assert.ok(rows.length > 20);
    const help = readFileSync('src/faces/cli/serve/serve-options.ts', 'utf8');
    for (const [, setting = '', value = ''] of rows) {
      const name = /`([^`]+)`/.exec(setting)![1]!;
      const link = /\]\(\.\.\/([^)]+)\)/.exec(setting);
      const text = link === null ? help : readFileSync(link[1]!, 'utf8');
      const number = `(?<![\\w.])${value}(?!\\w)`;
      const said =
        link === null
          ? new RegExp(`'${name}',[^]*?\\(default ${value}[;)]`)
          : value.startsWith('by ')
            ? new RegExp(`- \`${name} .*(?:by default|Default:)`)
            : new RegExp(`- \`${name}[ \`].*${number}`);
      assert.match(text, said, `${setting} ${value}`);
    }
  });

  test('has a metric for each limit that can be set', () => {
    const without = rows.filter((cells) => !/`(?:ndots|coredns)_\w+`/.test(cells[3] ?? ''));
    assert.deepEqual(without, []);
  });

  test('names metrics that exist', () => {
    const names = new Set(page.match(/(?:ndots|coredns)_\w+/g));
    for (const name of names)
      execFileSync('git', ['grep', '-q', `'${name}'`, '--', 'src/**/*.ts'], { stdio: 'ignore' });
  });
});
