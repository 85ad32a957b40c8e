import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { sourceStack } from './stack.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-stack-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Creates an error from a file that contains `src/a.ts` from its second line on. */
function errorIn(name: string): Error {
  const error = new Error('lost');
  const url = pathToFileURL(join(directory, name)).href;
  error.stack = `Error: lost\n    at take (${url}:2:7)\n    at node:internal/timers:1:1`;
  return error;
}

test('the stack of a bundled file shows the source if there is a map', () => {
  const map = { version: 3, sources: ['../src/a.ts'], names: [], mappings: ';MAEI' };
  writeFileSync(join(directory, 'mapped.js.map'), JSON.stringify(map));
  const source = join(directory, '../src/a.ts');
  assert.equal(
    sourceStack(errorIn('mapped.js')),
    `Error: lost\n    at take (${source}:3:5)\n    at node:internal/timers:1:1`,
  );
});

test('without a map, or with a damaged one, the stack stays unchanged', () => {
  writeFileSync(join(directory, 'damaged.js.map'), '{');
  for (const name of ['bare.js', 'damaged.js']) {
    const error = errorIn(name);
    assert.equal(sourceStack(error), error.stack);
  }
});
