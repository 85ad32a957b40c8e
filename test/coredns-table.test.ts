/** docs/coredns-plugins.md matches the code: it is up to date, and its examples are parsed as documented. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseCorefile } from '../src/server/corefile/parse.ts';
import { Problem } from '../src/server/base/problem.ts';
import { bindDirective } from '../src/server/corefile/syntax.ts';
import { order } from '../src/server/plugins/order.ts';
import { plugins } from './kit/plugins.ts';
import { moduleDirectory } from './coredns/module.ts';
import { directives } from '../tools/coredns/properties.ts';
import { tablePage, tableRows } from '../tools/coredns-table.ts';

describe('the table of plugins and properties', () => {
  test('is up to date', async () => {
    assert.equal(
      readFileSync('docs/coredns-plugins.md', 'utf8'),
      await tablePage(),
      'write it anew: node tools/coredns-table.ts',
    );
  });

  test('exactly the lines that it lists as served are parsed without a problem', async () => {
    const verdicts = new Map(
      (await tableRows()).map((row) => [`${row.directive} ${row.property}`, row.verdict]),
    );
    for (const { name, properties } of directives) {
      for (const { name: property, example } of properties) {
        const label = `${name} ${property}`;
        const isRefused = problemsIn(example).length > 0;
        assert.equal(isRefused, verdicts.get(label) === 'not supported', label);
      }
    }
  });

  test('a difference that names a property is listed with that property only', async () => {
    const rows = await tableRows();
    const noteOf = (directive: string, property: string): string =>
      rows.find((row) => row.directive === directive && row.property === property)!.note;
    assert.match(noteOf('dnstap', '[QUEUE]'), /^`QUEUE` limits memory/);
    assert.match(noteOf('rewrite', 'edns0 local'), /^`edns0 local append`/);
    assert.equal(noteOf('rewrite', 'edns0 nsid'), '');
  });

  test('differences that are too long for a cell are linked', async () => {
    const rows = await tableRows();
    const about = rows.filter(({ directive }) => directive === 'view');
    const link = '[3 differences](../src/server/plugins/view/view.md#differences-from-coredns)';
    assert.deepEqual(
      about.map(({ note }) => note),
      [link, link],
    );
  });

  test('every directive of CoreDNS is listed', () => {
    // The second table lists what ndots adds.
    const page = readFileSync('docs/coredns-plugins.md', 'utf8');
    for (const { name } of order) assert.ok(page.includes(`/${name}/${name}.md`), name);
  });

  test('every word of its pages and parsers is listed', (t) => {
    const directory = moduleDirectory();
    if (directory === null) return t.skip('the module of CoreDNS is not here');
    const names: Readonly<Record<string, string>> = { metrics: 'prometheus' };
    const missing: string[] = [];
    for (const page of globSync('plugin/*/README.md', { cwd: directory })) {
      const plugin = page.split('/')[1]!;
      const listed = directives.find(({ name }) => name === (names[plugin] ?? plugin));
      if (plugin === 'import') continue;
      assert.ok(listed !== undefined, plugin);
      const words = new Set(listed.properties.flatMap(({ name }) => name.split(/[ |]/)));
      for (const word of wordsOf(join(directory, 'plugin', plugin))) {
        // A line on the page that belongs to a whole Corefile.
        if (directives.some(({ name }) => name === word)) continue;
        if (!words.has(word) && !elsewhere.has(`${plugin} ${word}`))
          missing.push(`${plugin} ${word}`);
      }
    }
    assert.deepEqual(missing, []);
  });
});

/** Values rather than properties, and words that the table lists on other lines. */
const elsewhere: ReadonlySet<string> = new Set([
  'cache prefer_positive',
  'forward random',
  'forward round_robin',
  'forward sequential',
  'grpc random',
  'grpc round_robin',
  'grpc sequential',
  'local on',
  'local off',
  'proxyproto ignore',
  'proxyproto reject',
  'proxyproto skip',
  'proxyproto use',
  'ready continuously',
  'ready until-ready',
  'tsig algorithm',
  'dnssec file',
]);

/** The words that a parser compares against, and the first words of lines in the Syntax section. */
function wordsOf(directory: string): ReadonlySet<string> {
  const words = new Set<string>();
  for (const file of ['setup.go', 'parse.go'].map((name) => join(directory, name))) {
    if (!existsSync(file)) continue;
    for (const [, list] of readFileSync(file, 'utf8').matchAll(/case ("[^:\n]*"):/g))
      for (const [, word] of list!.matchAll(/"([a-z0-9_-]+)"/g)) words.add(word!);
  }
  const sections = readFileSync(join(directory, 'README.md'), 'utf8').split(/^## /m);
  const syntax = sections.find((section) => section.startsWith('Syntax')) ?? '';
  for (const [, block] of syntax.matchAll(/^[~`]{3}.*\n([^]*?)^[~`]{3}/gm))
    for (const [, word] of block!.matchAll(/^[ \t]+\[?([a-z0-9_-]+)\b/gm)) words.add(word!);
  return words;
}

/** The problems with these lines in a server block. */
function problemsIn(example: string): readonly Problem[] {
  const syntaxes = plugins.map(({ syntax }) => syntax);
  const { corefile, problems } = parseCorefile({
    file: 'Corefile',
    text: `example.org {\n${example.replaceAll('HTTP', '0')}\n}\n`,
    dnsPort: 53,
    env: {},
    directives: order.map((entry) => entry.name),
    syntaxes,
    readFile: () => '',
    glob: () => [],
  });
  try {
    const found = corefile.blocks.flatMap(({ directives: all }) =>
      syntaxes.flatMap((syntax) => {
        const own = all.filter((each) => each.name === syntax.name);
        return bindDirective(syntax, own, { zones: ['example.org.'] }).problems;
      }),
    );
    return [...problems, ...found];
  } catch (error) {
    if (error instanceof Problem) return [error];
    throw error;
  }
}
