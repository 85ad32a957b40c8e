import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

/** docs/problems.md and the sources list the same problems. */

const page = readFileSync('docs/problems.md', 'utf8');

/** Maps a code to the files that report it. */
function reported(): Map<string, string[]> {
  const codes = new Map<string, string[]>();
  for (const file of globSync('src/**/*.ts')) {
    if (file.endsWith('.test.ts')) continue;
    const text = readFileSync(file, 'utf8');
    // `code: 'x'`, `code: a ? 'x' : 'y'`, and the Corefile's own `problem('x', …)`.
    for (const [mention] of text.matchAll(
      /\bcode: (?:[^,\n]* \? )?'[a-z][^,\n]*|\bproblem\('[a-z-]+'/g,
    ))
      for (const [, code] of mention.matchAll(/'([a-z]+(?:-[a-z]+)*)'/g))
        codes.set(code!, [...(codes.get(code!) ?? []), file]);
  }
  return codes;
}

/** The codes in the first column of the page's tables. */
function explained(): string[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([a-z-]+)`/g)].map(([, code]) => code!));
}

describe('the problems page', () => {
  const codes = reported();

  test('every problem that is reported is explained', () => {
    assert.ok(codes.size > 50, 'the sources are not read as they are written now');
    const known = new Set(explained());
    for (const [code, files] of codes)
      assert.ok(known.has(code), `docs/problems.md does not explain ${code} (${files.join(', ')})`);
  });

  test('every problem that is explained is reported', () => {
    for (const code of explained()) assert.ok(codes.has(code), `nobody reports ${code} any more`);
  });

  test('no problem is explained twice', () => {
    const list = explained();
    assert.deepEqual(
      list.filter((code, index) => list.indexOf(code) !== index),
      [],
    );
  });

  test('every row of a table has its cells, and none is empty', () => {
    for (const line of page.split('\n').filter((each) => each.startsWith('| `'))) {
      const cells = line.split('|').slice(1, -1);
      assert.ok(cells.length === 3 || cells.length === 4, line);
      for (const cell of cells) assert.notEqual(cell.trim(), '', line);
    }
  });
});
