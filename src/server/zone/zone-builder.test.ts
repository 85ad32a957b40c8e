import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { seededRandom } from '../base/random.ts';
import { TYPE } from '../wire/iana.ts';
import { parseName, printName } from '../wire/name.ts';
import { ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';

const origin = parseName('example.org.');
const name = parseName('a.example.org.');
const address = (number: number): Uint8Array =>
  Uint8Array.of(10, number >> 16, (number >> 8) & 0xff, number & 0xff);

test('a record added thousands of times to a large RRset is stored once, and checked in linear time', async () => {
  const pack = (count: number): void => {
    const builder = new ZoneBuilder(origin);
    for (let i = 0; i < count; i++) builder.add(name, TYPE.A, 60, address(Math.min(i, 998)));
    const zone = new ZoneData(builder.pack());
    assert.ok(zone.data.length < 10_000);
  };
  await costsAtMost(
    24,
    () => pack(65_536),
    () => pack(8192),
  );
});

test('thousands of aliases at a name with thousands of records take time linear in both', async () => {
  const key = Uint8Array.of(0, 0, 0, 0);
  for (const other of [TYPE.KEY, TYPE.A]) {
    const build = (records: number, aliases: number): void => {
      const builder = new ZoneBuilder(origin);
      for (let i = 0; i < records; i++) builder.add(name, TYPE.KEY, 60, key);
      builder.add(name, other, 60, key);
      const refusals = new Set<string | null>();
      for (let i = 0; i < aliases; i++)
        refusals.add(builder.add(name, TYPE.CNAME, 60, Uint8Array.of(1, i & 0xff, 0)));
      const expected = other === TYPE.A ? ['alias-and-other'] : [null, 'second-alias', 'twice'];
      assert.deepEqual([...refusals], expected);
    };
    await costsAtMost(
      24,
      () => build(60_000, 8000),
      () => build(7500, 1000),
    );
  }
});

test('a name has at most 65536 records: more are rejected, and the others stay', () => {
  const builder = new ZoneBuilder(origin);
  for (let i = 0; i < 65_536; i++) assert.equal(builder.add(name, TYPE.A, 60, address(i)), null);
  assert.equal(builder.add(name, TYPE.A, 60, address(65_536)), 'too-many');
  assert.equal(builder.add(parseName('b.example.org.'), TYPE.A, 60, address(1)), null);
  assert.equal(builder.records, 65_537);
});

test('thousands of names in any order are packed in canonical order', () => {
  for (const count of [1023, 1024, 1025, 3000, 20_000]) {
    const builder = new ZoneBuilder(origin);
    const random = seededRandom(count);
    const labels = new Set<string>();
    while (labels.size < count) labels.add(`n${random.integer(1_000_000)}`);
    for (const label of labels)
      builder.add(parseName(`${label}.example.org.`), TYPE.A, 60, address(1));
    const zone = new ZoneData(builder.pack());
    const packed: string[] = [];
    const bytes = new Uint8Array(256);
    for (let node = 1; node < zone.size; node++)
      packed.push(printName(bytes.slice(0, zone.name(node, bytes))).split('.')[0]!);
    assert.deepEqual(packed, [...labels].toSorted());
  }
});
