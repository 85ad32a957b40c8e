import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost, stepsAtMost } from './growth.ts';

/** Reads each number once, or combines each number with every other. */
function linear(count: number): () => number {
  return () => {
    let sum = 0;
    for (let i = 0; i < count * 100; i++) sum = (sum + i * 7) | 0;
    return sum;
  };
}

function quadratic(count: number): () => number {
  return () => {
    let sum = 0;
    for (let i = 0; i < count; i++) for (let j = 0; j < count; j++) sum = (sum + i * j) | 0;
    return sum;
  };
}

test('linear work eight times as large costs at most 24 times as much, quadratic work more', async () => {
  await costsAtMost(24, linear(8000), linear(1000));
  await assert.rejects(costsAtMost(24, quadratic(6000), quadratic(300)), /more than 24 ×/);
});

test('work in even steps has no step of a fifth, work with one large step has', () => {
  const steps = function* (sizes: readonly number[]): Generator<void> {
    for (const size of sizes) {
      linear(size)();
      yield;
    }
  };
  const even = Array.from({ length: 50 }, () => 20_000);
  stepsAtMost(1 / 5, () => steps(even));
  assert.throws(() => stepsAtMost(1 / 5, () => steps([...even, 1_000_000])), /longest step/);
});
