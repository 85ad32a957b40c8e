import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printName } from '../../wire/name.ts';
import { searchListOf } from './resolv-conf.ts';

const cases: readonly (readonly [string, readonly string[]])[] = [
  ['nameserver 10.0.0.10\n', []],
  ['search One.Example two.example.\n', ['one.example.', 'two.example.']],
  ['domain one.example\n', ['one.example.']],
  ['search one.example\nsearch two.example\n', ['two.example.']],
  ['search one.example\ndomain two.example\n', ['two.example.']],
  ['  search\tone.example\r\n# search two.example\n; search three.example\n', ['one.example.']],
  [`search ${'x'.repeat(64)}.example . good.example\n`, ['good.example.']],
];

test('the last search or domain line defines the search list', () => {
  for (const [text, wanted] of cases)
    assert.deepEqual(
      searchListOf(text).map((name) => printName(name)),
      wanted,
      text,
    );
});
