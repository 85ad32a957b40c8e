import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printName } from '../../wire/name.ts';
import { readEntries, type Entries } from './entries.ts';

const all = (): boolean => true;
const names = ({ byName }: Entries): string[] =>
  [...byName.keys()].map((name) => printName(Buffer.from(name, 'latin1')));

describe('hosts lines', () => {
  test('beyond the names that are kept are left out, and those of the Corefile are there', () => {
    const file = Array.from({ length: 100 }, (_, i) => `10.0.0.${i} n${i}.example`).join('\n');
    const entries = readEntries([file, '10.1.1.1 inline.example'], all, false, 10);
    assert.equal(entries.full, true);
    assert.deepEqual(names(entries).slice(-2), ['n9.example.', 'inline.example.']);
    assert.equal(readEntries(['10.0.0.1 a b'], all, false, 2).full, false);
  });

  test('of millions of words, or of none that make sense, take no memory', () => {
    const line = `10.0.0.1 ${'x '.repeat(500_000)}`;
    const binary = Buffer.alloc(1_000_000, Uint8Array.of(0, 255, 10, 32, 200)).toString('utf8');
    const entries = readEntries([`${line}\n${binary}\n10.0.0.2 last.example`], all, true);
    assert.deepEqual(names(entries), [
      'x.',
      '1.0.0.10.in-addr.arpa.',
      'last.example.',
      '2.0.0.10.in-addr.arpa.',
    ]);
    assert.equal(entries.byName.get('\x01x\0')?.v4.length, 1);
  });

  test('end at a comment, with or without a space before it', () => {
    const entries = readEntries(['10.0.0.1 a#b\n10.0.0.2 #c\n#10.0.0.3 d'], all, false);
    assert.deepEqual(names(entries), ['a.']);
  });
});
