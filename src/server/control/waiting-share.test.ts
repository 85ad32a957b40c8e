import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitingShare } from './waiting-share.ts';

const MIB = 1024 * 1024;

test('as many queries wait as the memory of the container has room for, and no more than without a limit', () => {
  assert.equal(waitingShare(Infinity, 1), 65_536);
  assert.equal(waitingShare(Infinity, 4), 65_536);
  assert.equal(waitingShare(170 * MIB, 1), 8738);
  assert.equal(waitingShare(170 * MIB, 2), 4369);
  assert.equal(waitingShare(64 * MIB, 1), 4096);
  // Workers themselves take memory, too.
  assert.equal(waitingShare(170 * MIB, 4), 1252);
  assert.equal(waitingShare(8192 * MIB, 2), 65_536);
});
