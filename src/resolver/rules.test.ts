import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { rules } from './rules.ts';

const page = readFileSync('docs/resolvers.md', 'utf8');
const rows = new Map(
  [...page.matchAll(/^\| `([a-z-]+)` \| ([^|]+) \| ([^|]*) \|$/gm)].map(
    ([, name = '', text = '', ids = '']) => [name, { text: text.trim(), ids: ids.trim() }],
  ),
);

describe('the rules by name', () => {
  for (const [name, text] of Object.entries(rules)) {
    test(`${name} stands in docs/resolvers.md, in the same words`, () => {
      assert.equal(rows.get(name)?.text, text);
    });
  }

  test('the page lists no others', () => {
    assert.deepEqual(
      [...rows.keys()].filter((name) => !Object.hasOwn(rules, name)),
      [],
    );
  });

  test('the scenarios that the page names exist', () => {
    const own = JSON.parse(readFileSync('test/resolvers/scenarios.json', 'utf8')) as {
      id: string;
    }[];
    const known = new Set([
      ...globSync('test/resolvers/measured/*.json').map((file) =>
        file.replace(/^.*\/|\.json$/g, ''),
      ),
      ...own.map((scenario) => scenario.id),
    ]);
    const named = [...rows.values()].flatMap(({ ids }) => ids.split(' '));
    assert.deepEqual(
      named.filter((id) => !known.has(id)),
      [],
    );
  });
});
