import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseName } from '../../wire/name.ts';
import { NameFilter } from './name-filter.ts';

test('a name that comes again is known as long as 16384 others have come in between, whenever it came first', () => {
  const filter = new NameFilter();
  let others = 0;
  const comes = (text: string): boolean => {
    const name = parseName(text);
    return filter.again(name, name.length);
  };
  for (let i = 0; i < 20; i++) {
    // Another place in the turn of the filter each time.
    for (let j = 0; j < 1100; j++) comes(`n${others++}.test.`);
    comes(`again${i}.test.`);
    for (let j = 0; j < 16_000; j++) comes(`n${others++}.test.`);
    assert.ok(comes(`again${i}.test.`), `${i}`);
  }
});

test('of names that come once, one of a hundred at most is taken for another', () => {
  const filter = new NameFilter();
  let taken = 0;
  for (let i = 0; i < 100_000; i++) {
    const name = parseName(`n${i}.test.`);
    if (filter.again(name, name.length)) taken++;
  }
  assert.ok(taken < 1000, `${taken}`);
});
