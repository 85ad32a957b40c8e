import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Recent } from './recent.ts';
import { VirtualClock } from './virtual-clock.ts';

test('an entry counts until it expires and is then no longer held', async () => {
  const clock = new VirtualClock();
  const recent = new Recent<string, number>(clock, 1000, 10);
  recent.put('a', 1);
  await clock.advance(600);
  recent.put('b', 2);
  assert.equal(recent.get('a'), 1);
  await clock.advance(400);
  assert.equal(recent.get('a'), undefined);
  assert.equal(recent.get('b'), 2);
  recent.put('c', 3);
  assert.equal(recent.size, 2);
});

test('when full, the oldest entry is dropped; putting an entry again renews it', () => {
  const recent = new Recent<string, number>(new VirtualClock(), 1000, 2);
  recent.put('a', 1);
  recent.put('b', 2);
  recent.put('a', 3);
  recent.put('c', 4);
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => recent.get(key)),
    [3, undefined, 4],
  );
  recent.delete('a');
  assert.equal(recent.size, 1);
});
