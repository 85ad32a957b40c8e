import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, test } from 'node:test';
import { stories } from './stories.ts';

const DIRECTORY = 'examples/lab/stories';

describe('the built-in stories', () => {
  test('every story file is listed under its own name', () => {
    const names = new Set(stories.map(({ name }) => name));
    assert.equal(names.size, stories.length);
    for (const file of readdirSync(DIRECTORY)) assert.ok(names.has(basename(file, '.yaml')), file);
  });

  test('a story can be played, or has a model', () => {
    for (const { name, play, model, seconds } of stories) {
      assert.ok(play !== null || model !== null, name);
      assert.ok(seconds > 0, name);
    }
  });
});
