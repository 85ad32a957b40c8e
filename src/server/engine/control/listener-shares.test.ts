import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listenerShares } from './listener-shares.ts';

const MIB = 1024 * 1024;

test("the limit of waiting queries fits the container's memory, and is at most the one without a limit", () => {
  const waiting = (limit: number, workers: number): number =>
    listenerShares(limit, workers).waiting;
  assert.equal(waiting(Infinity, 1), 65_536);
  assert.equal(waiting(Infinity, 4), 65_536);
  assert.equal(waiting(170 * MIB, 1), 8738);
  assert.equal(waiting(170 * MIB, 2), 4369);
  assert.equal(waiting(64 * MIB, 1), 4096);
  // Workers themselves take memory, too.
  assert.equal(waiting(170 * MIB, 4), 1252);
  assert.equal(waiting(8192 * MIB, 2), 65_536);
});

test('connections that stay when memory is short take a sixteenth of it, over all workers', () => {
  const spared = (limit: number, workers: number): number => listenerShares(limit, workers).spared;
  assert.equal(spared(512 * MIB, 1), 0.5);
  assert.equal(spared(512 * MIB, 2), 0.25);
  assert.equal(spared(8192 * MIB, 4), 1);
  assert.equal(spared(Infinity, 4), 1);
});

test("unread replies take a 32nd of the container's memory, and at most as much as without a limit", () => {
  const held = (limit: number, workers: number): number => listenerShares(limit, workers).heldBytes;
  assert.equal(held(128 * MIB, 1), 4 * MIB);
  assert.equal(held(128 * MIB, 2), 2 * MIB);
  assert.equal(held(128 * MIB, 8), MIB);
  assert.equal(held(8192 * MIB, 4), 16 * MIB);
  assert.equal(held(Infinity, 4), 16 * MIB);
});
