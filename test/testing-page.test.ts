/** Checks docs/testing.md against the tests that exist. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, test } from 'node:test';

const page = readFileSync('docs/testing.md', 'utf8');
const testFiles = globSync('{src,test,tools,bench}/**/*.test.ts');

describe('the testing page', () => {
  test('lists every fuzz target', () => {
    const targets = globSync('test/{fuzz,simulator}/*.ts').filter((file) =>
      readFileSync(file, 'utf8').includes('import.meta.main'),
    );
    assert.ok(targets.length >= 4);
    for (const target of targets) assert.ok(page.includes(`\`${target}\``), target);
  });

  test('names only files and directories that exist', () => {
    const paths = [...page.matchAll(/\b(?:test|bench|src)\/[\w./-]*\w/g)].map(([path]) => path);
    assert.ok(paths.length > 10);
    for (const path of paths) assert.ok(existsSync(path), path);
  });

  test('names only tests that exist', () => {
    const names = [...page.matchAll(/npm (?:test|run test:long) -- ([\w/ \n-]+)/g)].flatMap(
      ([, words]) => words!.trim().split(/\s+/),
    );
    assert.ok(names.length > 15);
    for (const name of names)
      assert.ok(
        testFiles.some((file) => file.includes(`/${name}/`) || basename(file).startsWith(name)) ||
          existsSync(name),
        name,
      );
  });
});
