/**
 * The page about upgrading Node or koffi covers every file in the room, and was last reviewed for the current versions.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, test } from 'node:test';

const page = readFileSync('docs/upgrading-node.md', 'utf8');
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly devDependencies: { readonly node: string };
  readonly optionalDependencies: { readonly koffi: string };
  readonly scripts: Readonly<Record<string, string>>;
};

describe('docs/upgrading-node.md', () => {
  test('was read for the versions of Node and koffi in package.json', () => {
    const [, node, koffi] = /^Tested with Node (\S+) and koffi (\S+)\. /m.exec(page) ?? [];
    const { devDependencies, optionalDependencies } = manifest;
    assert.deepEqual([node, koffi], [devDependencies.node, optionalDependencies.koffi]);
  });

  test('lists each file of the room runtime once, with its gain and its switch', () => {
    const [, table = ''] = page.split('## Every file');
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    for (const row of rows) assert.equal(row.split('|').length, 6, row);
    const listed = rows.flatMap((row) => row.split('|')[1]!.match(/[\w-]+\.ts/g) ?? []);
    const files = globSync('src/server/runtime/*.ts').map((file) => basename(file));
    const own = files.filter((file) => !file.endsWith('.test.ts'));
    assert.deepEqual(listed.toSorted(), own.toSorted());
  });

  test('has each test that it names run by npm run test:runtime', () => {
    const named = new Set(page.match(/[\w-]+\.test\.ts/g));
    assert.ok(named.size > 5);
    const [, ...words] = manifest.scripts['test:runtime']!.split('tools/test.ts ');
    const chosen = new Set(words.join(' ').split(' '));
    for (const file of named) {
      const [found] = globSync(`{src,test}/**/${file}`);
      assert.ok(found !== undefined, file);
      const isChosen =
        found.startsWith('src/server/runtime/') || chosen.has(file.replace('.test.ts', ''));
      assert.ok(isChosen, `${file} is not run`);
    }
  });
});
