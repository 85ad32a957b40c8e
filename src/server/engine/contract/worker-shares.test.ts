import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerHeapMb } from './worker-shares.ts';

const MIB = 1024 * 1024;

test("worker heaps share the container's memory limit", () => {
  assert.equal(workerHeapMb(170 * MIB, 1), 80);
  assert.equal(workerHeapMb(170 * MIB, 2), 52);
  assert.equal(workerHeapMb(170 * MIB, 4), 38);
  assert.equal(workerHeapMb(64 * MIB, 2), 32);
  assert.equal(workerHeapMb(1024 * MIB, 2), 256);
  assert.equal(workerHeapMb(Infinity, 16), 256);
});
