import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { between, fromTo } from './texts.ts';

const start = Date.UTC(2026, 0, 1, 12);

test('a span is two times, or one if both print the same', () => {
  assert.equal(fromTo(start, start + 5000), 'from 12:00:00 to 12:00:05');
  assert.equal(fromTo(start, start + 5), 'at 12:00:00');
  assert.equal(fromTo(start, start + 5, 'fine'), 'from 12:00:00.000 to 12:00:00.005');
  assert.equal(fromTo(start, start, 'fine'), 'at 12:00:00.000');
  assert.equal(between(start, start + 5000), 'between 12:00:00 and 12:00:05');
  assert.equal(between(start, start), 'at 12:00:00');
});

test('no text of doctor puts two times together in another way', () => {
  for (const file of globSync('src/tools/doctor/**/*.ts', { cwd: process.cwd() })) {
    if (file.endsWith('.test.ts') || file.endsWith('/texts.ts')) continue;
    const text = readFileSync(file, 'utf8');
    assert.doesNotMatch(text, /clock\([^`]*?\)\} (?:to|and) \$\{clock\(/, file);
    assert.doesNotMatch(text, /\bclocks\(/, file);
  }
});
