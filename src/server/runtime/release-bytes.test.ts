import assert from 'node:assert/strict';
import { test } from 'node:test';
import { releaseBytes } from './release-bytes.ts';

test('memory is freed at once, and its bytes are no longer visible', () => {
  const whole = Buffer.allocUnsafeSlow(1 << 20);
  const end = whole.subarray(1000);
  const before = process.memoryUsage().arrayBuffers;
  releaseBytes(end);
  assert.ok(process.memoryUsage().arrayBuffers < before - 1_000_000);
  assert.deepEqual([whole.length, end.length], [0, 0]);
});

test('bytes in the middle of possibly shared memory stay', () => {
  const whole = Buffer.allocUnsafeSlow(100);
  releaseBytes(whole.subarray(0, 50));
  assert.equal(whole.length, 100);
});
