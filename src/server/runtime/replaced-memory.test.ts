import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ReplacedMemory } from './replaced-memory.ts';
import { VirtualClock } from '../base/virtual-clock.ts';

/** Counts collections in place of the runtime's. */
function collections(t: TestContext): { count: number } {
  const runtime = globalThis as { gc?: unknown };
  const before = runtime.gc;
  const counted = { count: 0 };
  runtime.gc = () => counted.count++;
  t.after(() => {
    runtime.gc = before;
  });
  return counted;
}

const MIB = 1024 * 1024;

test('large versions that follow each other are collected together', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  const replaced = new ReplacedMemory(clock, () => false);
  for (let i = 0; i < 6; i++) {
    replaced.add(5 * MIB);
    await clock.advance(2000);
  }
  assert.equal(counted.count, 0);
  await clock.advance(3000);
  assert.equal(counted.count, 1);
  await clock.advance(60_000);
  assert.equal(counted.count, 1, 'there is nothing more to collect');
});

test('so much memory that it matters is collected at once, little is not collected at all', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  const replaced = new ReplacedMemory(clock, () => true);
  replaced.add(40 * MIB);
  replaced.add(40 * MIB);
  await clock.advance(1);
  assert.equal(counted.count, 1);
  replaced.add(0.5 * MIB);
  replaced.add(0);
  await clock.advance(60_000);
  assert.equal(counted.count, 1);
});

test('a thread that answers many queries is let alone until it has time', async (t) => {
  const counted = collections(t);
  const clock = new VirtualClock();
  let busy = true;
  const replaced = new ReplacedMemory(clock, () => busy);
  replaced.add(5 * MIB);
  await clock.advance(60_000);
  assert.equal(counted.count, 0);
  busy = false;
  await clock.advance(15_000);
  assert.equal(counted.count, 1);
});
