import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printSpan } from './figures.ts';

test('a span within a second is a single time', () => {
  assert.equal(printSpan(0, 999), '00:00:00');
  assert.equal(printSpan(0, 61_000), '00:00:00 to 00:01:01');
});
