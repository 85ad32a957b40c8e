import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { printName } from '../../wire/name.ts';
import { HostsBuilder } from './builder.ts';
import { readEntry } from './entries.ts';
import { FIELDS } from './hosts-table.ts';

const terms = { wanted: (): boolean => true, reverse: false };

/** Returns a builder's names in order of insertion. */
function names(builder: HostsBuilder): readonly string[] {
  const { data, entries } = builder.build();
  return Array.from({ length: entries.length / FIELDS }, (_, i) =>
    printName(data, entries[FIELDS * i]!),
  );
}

function read(text: string, { reverse = false, builder = new HostsBuilder() } = {}): HostsBuilder {
  builder.beginText();
  for (const line of text.split('\n')) if (!readEntry(line, { ...terms, reverse }, builder)) break;
  return builder;
}

describe('hosts lines', () => {
  test('above the limit are ignored, but those in the Corefile exist', () => {
    const file = Array.from({ length: 100 }, (_, i) => `10.0.0.${i} n${i}.example`).join('\n');
    const builder = read(file, { builder: new HostsBuilder(10) });
    read('10.1.1.1 inline.example', { builder });
    assert.equal(builder.full, true);
    assert.deepEqual(names(builder).slice(-2), ['n9.example.', 'inline.example.']);
    assert.equal(read('10.0.0.1 a b', { builder: new HostsBuilder(2) }).full, false);
  });

  test('with millions of words, or without valid ones, take no memory', () => {
    const line = `10.0.0.1 ${'x '.repeat(500_000)}`;
    const binary = Buffer.alloc(1_000_000, Uint8Array.of(0, 255, 10, 32, 200)).toString('utf8');
    const builder = read(`${line}\n${binary}\n10.0.0.2 last.example`, { reverse: true });
    assert.deepEqual(names(builder), [
      'x.',
      '1.0.0.10.in-addr.arpa.',
      'last.example.',
      '2.0.0.10.in-addr.arpa.',
    ]);
    const { data, entries } = builder.build();
    assert.deepEqual([...entries.subarray(0, FIELDS)], [0, 3, 1, 0, 0]);
    assert.deepEqual([...data.subarray(0, 7)], [1, 0x78, 0, 10, 0, 0, 1]);
  });

  test('end at a comment, with or without a space before it', () => {
    assert.deepEqual(names(read('10.0.0.1 a#b\n10.0.0.2 #c\n#10.0.0.3 d')), ['a.']);
  });

  test('with more names per address than a reply can hold are reported once, and take no longer than others', async () => {
    const read = (address: (i: number) => string): void => {
      const builder = new HostsBuilder();
      for (let i = 0; i < 50_000; i++)
        readEntry(`${address(i)} n${i}.example`, { ...terms, reverse: true }, builder);
      assert.equal(builder.count, 100_000);
      if (address(0) === address(1)) assert.deepEqual(builder.crowded, ['0.0.0.0.in-addr.arpa.']);
    };
    const spread = (i: number): string => `10.0.${i >> 8}.${i & 255}`;
    await costsAtMost(
      3,
      () => read(() => '0.0.0.0'),
      () => read(spread),
    );
  });
});
