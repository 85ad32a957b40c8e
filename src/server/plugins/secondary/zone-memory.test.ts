import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NoRoom, ZoneMemory } from './zone-memory.ts';

const KIB = 1024;

function memory(most: number): { memory: ZoneMemory; used: () => number } {
  let used = 0;
  return {
    memory: new ZoneMemory({ set: (value) => void (used = value) }).allow(most),
    used: () => used,
  };
}

describe('memory for transferred zones', () => {
  test('is limited for all of them together, however many arrive at a time', () => {
    const { memory: all, used } = memory(10_000 * KIB);
    const arrivals = Array.from({ length: 30 }, () => all.arrive());
    let most = 0;
    for (let i = 0; i < 3000; i++) {
      for (const one of arrivals) {
        try {
          one.take(4 * KIB);
        } catch (error) {
          assert.ok(error instanceof NoRoom);
        }
        most = Math.max(most, used());
      }
    }
    assert.ok(most > 9000 * KIB && most <= 10_000 * KIB, `${most}`);
    for (const one of arrivals) all.leave(one);
    assert.equal(used(), 0);
  });

  test('is taken from an endless transfer when another arrives, which completes', () => {
    const { memory: all } = memory(10_000 * KIB);
    const endless = all.arrive();
    for (let i = 0; i < 49; i++) endless.take(64 * KIB);
    const small = all.arrive();
    for (let i = 0; i < 10; i++) small.take(64 * KIB);
    assert.ok(endless.signal.aborted);
    assert.ok(!small.signal.aborted);
    assert.throws(() => endless.take(1), NoRoom);
  });

  test('is also limited for a second version of a large zone built from differences', () => {
    const { memory: all, used } = memory(1000 * KIB);
    all.serve(600 * KIB);
    const changes = all.arrive();
    changes.take(1);
    assert.throws(() => changes.reserve(600 * KIB), NoRoom);
    all.leave(changes);
    const small = all.arrive();
    small.reserve(300 * KIB);
    assert.equal(used(), 900 * KIB);
    assert.equal(small.records, 0);
    all.leave(small);
    assert.equal(used(), 600 * KIB);
  });

  test('is released by a restarted transfer, which counts from zero', () => {
    const { memory: all, used } = memory(1000 * KIB);
    const one = all.arrive();
    one.reserve(300 * KIB);
    one.take(64 * KIB);
    all.restart(one);
    assert.deepEqual([used(), one.records, one.bytes], [0, 0, 0]);
    one.take(300 * KIB);
    assert.ok(!one.signal.aborted);
    all.leave(one);
    assert.equal(used(), 0);
  });

  test('leaves room to replace the largest served zone', () => {
    const { memory: all } = memory(4 * 1000 * KIB);
    all.serve(1000 * KIB);
    const next = all.arrive();
    for (let i = 0; i < 960; i++) next.take(KIB);
    assert.ok(!next.signal.aborted);
    all.serve(1000 * KIB);
    assert.throws(() => {
      for (let i = 0; i < 960; i++) next.take(KIB);
    }, NoRoom);
  });
});
