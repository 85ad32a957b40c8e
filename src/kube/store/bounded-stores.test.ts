import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectMemory } from './bounded-stores.ts';

const MIB = 1024 * 1024;

test('objects have the room that the limit of the container leaves', () => {
  assert.equal(objectMemory(170 * MIB), 9.375 * MIB);
  assert.equal(objectMemory(1024 * MIB) > 110 * MIB, true);
  // Too little for anything: the least that makes sense.
  assert.equal(objectMemory(64 * MIB), 8 * MIB);
  // Nothing bounds it: 0, or the largest number that the kernel knows.
  assert.equal(objectMemory(0), 64 * MIB);
  assert.equal(objectMemory(18_446_744_073_709_552_000), 64 * MIB);
});
