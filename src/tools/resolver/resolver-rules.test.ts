import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { labelled, readMeasured } from '../../../test/kit/measured.ts';
import { readRecorded } from '../../../test/kit/recorded.ts';
import { clientLines, findClient, labelOf } from './clients.ts';
import { rules } from './resolver-rules.ts';

const page = readFileSync('docs/resolvers.md', 'utf8');
const rows = new Map(
  [...page.matchAll(/^\| `([a-z-]+)` \| ([^|]+) \| ([^|]*) \|$/gm)].map(
    ([, name = '', text = '', ids = '']) => [name, { text: text.trim(), ids: ids.trim() }],
  ),
);

describe('the rules by name', () => {
  for (const [name, text] of Object.entries(rules)) {
    test(`${name} is documented in docs/resolvers.md, in the same words`, () => {
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

describe('the releases of the clients', () => {
  const listed = new Map(
    [...page.matchAll(/^\| ([a-z-]+) \| ([\d. ]*) \| ([\d. ]*) \|$/gm)].map(
      ([, name = '', measured = '', read = '']) => [
        name,
        { measured: measured.split(' '), read: read.split(' ') },
      ],
    ),
  );
  const labels = readMeasured().flatMap(({ runs }) => runs.map(({ client }) => labelled(client)));
  const recorded = readRecorded().flatMap(({ runs }) =>
    runs.flatMap(({ client, same = [] }) => [client, ...same].map(findClient)),
  );
  const run = new Set(
    [...labels.map((one) => one?.client), ...recorded].map((client) => client && labelOf(client)),
  );

  for (const { name, versions } of clientLines) {
    if (versions.length === 0) continue;
    test(`docs/resolvers.md shows for each release of ${name} whether it was measured`, () => {
      const measured = versions.filter((version) => run.has(`${name}@${version}`));
      assert.deepEqual(listed.get(name)?.measured, measured);
      const read = versions.filter((version) => !measured.includes(version));
      assert.deepEqual(
        listed.get(name)?.read.filter((version) => version !== ''),
        read,
      );
    });
  }
});
