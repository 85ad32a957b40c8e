import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseName } from '../../wire/name.ts';
import { NameFilter } from './name-filter.ts';

test('a repeated name is recognized if fewer than 16384 others came in between, at any position', () => {
  const filter = new NameFilter();
  let others = 0;
  const comes = (text: string): boolean => {
    const name = parseName(text);
    return filter.again(name, name.length);
  };
  for (let i = 0; i < 20; i++) {
    // Starts at a different position in the filter's rotation each time.
    for (let j = 0; j < 1100; j++) comes(`n${others++}.test.`);
    comes(`again${i}.test.`);
    for (let j = 0; j < 16_000; j++) comes(`n${others++}.test.`);
    assert.ok(comes(`again${i}.test.`), `${i}`);
  }
});

test('of names that occur once, at most one in a hundred is mistaken for another', () => {
  const filter = new NameFilter();
  let taken = 0;
  for (let i = 0; i < 100_000; i++) {
    const name = parseName(`n${i}.test.`);
    if (filter.again(name, name.length)) taken++;
  }
  assert.ok(taken < 1000, `${taken}`);
});
