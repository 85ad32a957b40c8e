import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryShare } from './memory-share.ts';

const MIB = 1024 * 1024;

test('a consumer gets a share of the memory left by the container limit', () => {
  const terms = { times: 8, least: 8 * MIB, unlimited: 64 * MIB };
  assert.equal(memoryShare(170 * MIB, terms), 9.375 * MIB);
  assert.equal(memoryShare(1024 * MIB, terms) > 110 * MIB, true);
  // Too little for anything, so the minimum applies.
  assert.equal(memoryShare(64 * MIB, terms), 8 * MIB);
  // Unlimited.
  assert.equal(memoryShare(Infinity, terms), 64 * MIB);
});
