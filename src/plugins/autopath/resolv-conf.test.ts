import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { printName } from '../../wire/name.ts';
import { readSearchList } from './resolv-conf.ts';

const cases: readonly (readonly [string, readonly string[]])[] = [
  ['nameserver 10.0.0.10\n', []],
  ['search One.Example two.example.\n', ['one.example.', 'two.example.']],
  ['domain one.example\n', ['one.example.']],
  ['search one.example\nsearch two.example\n', ['two.example.']],
  ['search one.example\ndomain two.example\n', ['two.example.']],
  ['  search\tone.example\r\n# search two.example\n; search three.example\n', ['one.example.']],
  [`search ${'x'.repeat(64)}.example . good.example\n`, ['good.example.']],
];

test('the search list is that of the last search or domain line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ndots-resolv-'));
  try {
    for (const [text, wanted] of cases) {
      const file = join(folder, 'resolv.conf');
      writeFileSync(file, text);
      assert.deepEqual(
        readSearchList(file).map((name) => printName(name)),
        wanted,
        text,
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
