import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentlyUsed } from './recently-used.ts';

const MOST = 100;

test('the entries used last are still there, and the size stays within its limit', () => {
  const map = new RecentlyUsed<number, number>(MOST);
  const used: number[] = [];
  let state = 1;
  for (let round = 0; round < 20_000; round++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    const key = (state >> 8) % 400;
    if (map.get(key) === undefined) map.set(key, -key);
    used.push(key);
    assert.ok(map.size <= MOST);
    const last = used.slice(-MOST / 2);
    // Reading an entry counts as use, so only the oldest of the last ones is read.
    assert.equal(map.get(last[0]!), -last[0]!);
    used.push(last[0]!);
  }
});

test('a deleted entry is gone, however old it is', () => {
  const map = new RecentlyUsed<string, number>(4);
  for (const key of ['a', 'b', 'c']) map.set(key, 1);
  map.delete('a');
  map.delete('c');
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => map.get(key)),
    [undefined, 1, undefined],
  );
});
