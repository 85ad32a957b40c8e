import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markShares } from './chart-marks.ts';

const chart = { fromMs: 10_000, stepMs: 1000, steps: 5 };

test('a mark is drawn at its time', () => {
  assert.deepEqual(markShares([10_000, 11_000, 12_500, 14_000], chart), [0, 0.25, 0.625, 1]);
});

test('a mark in the last step, which has just begun, is drawn at the end', () => {
  assert.deepEqual(markShares([14_001, 14_999], chart), [1, 1]);
  assert.deepEqual(markShares([10_400], { ...chart, steps: 1 }), [1]);
});

test('a mark outside the chart is not drawn', () => {
  assert.deepEqual(markShares([9_999, 15_000], chart), []);
});
