import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepsAtMost } from '../../../test/kit/growth.ts';
import { atOnce, type Slices } from '../base/slices.ts';
import { TYPE } from '../wire/iana.ts';
import { parseName } from '../wire/name.ts';
import { changedZone } from './changed-zone.ts';
import { Changes } from './changes.ts';
import { putRecord } from './stored-record.ts';
import { difference } from './difference.ts';
import { GrowingBytes } from './growing.ts';
import type { PackedZone } from './packed-zone.ts';
import { NAME_RECORDS_MAX, ZoneBuilder } from './zone-builder.ts';

const origin = parseName('example.org.');
const address = Uint8Array.of(10, 0, 0, 1);

function soa(serial: number): Uint8Array {
  const data = Buffer.alloc(22);
  data.writeUInt32BE(serial, 2);
  return data;
}

function nameOf(label: string): Uint8Array {
  return Buffer.concat([Buffer.of(label.length), Buffer.from(label), origin]);
}

/** A version with an address for each of these names, in no particular order. */
function zoneOf(names: number): PackedZone {
  const builder = new ZoneBuilder(origin);
  builder.add(origin, TYPE.SOA, 60, soa(1));
  for (let i = 0; i < names; i++)
    builder.add(nameOf(`h${(i * 7919) % names}`), TYPE.A, 60, address);
  return builder.pack();
}

/** Creates the next version; `write` provides the records to remove and to add. */
function changing(
  old: PackedZone,
  write: (removed: GrowingBytes, added: GrowingBytes) => void,
): Slices<PackedZone> {
  const removed = new GrowingBytes();
  const added = new GrowingBytes();
  putRecord(removed, origin, TYPE.SOA, 60, soa(1));
  putRecord(added, origin, TYPE.SOA, 60, soa(2));
  write(removed, added);
  const changes = atOnce(Changes.of(origin, [difference(removed, added)]));
  return changedZone(old, changes, { owner: origin, ttl: 60, data: soa(2) });
}

test('differences that give a name more than 65536 records are rejected', () => {
  const old = zoneOf(1);
  const many = (count: number): Slices<PackedZone> =>
    changing(old, (_, added) => {
      for (let i = 1; i < count; i++)
        putRecord(added, nameOf('h0'), TYPE.A, 60, Uint8Array.of(11, i >> 16, i >> 8, i));
    });
  assert.equal(atOnce(many(NAME_RECORDS_MAX)).records, 1 + NAME_RECORDS_MAX);
  assert.throws(
    () => atOnce(many(NAME_RECORDS_MAX + 1)),
    /h0\.example\.org\. has more than 65536 records/,
  );
});

test('tens of thousands of added or removed names are merged into a large zone in small steps', () => {
  const old = zoneOf(200_000);
  const kinds = {
    come: (_: GrowingBytes, added: GrowingBytes): void => {
      for (let i = 0; i < 90_000; i++) putRecord(added, nameOf(`n${i}`), TYPE.A, 60, address);
    },
    go: (removed: GrowingBytes): void => {
      for (let i = 0; i < 90_000; i++) putRecord(removed, nameOf(`h${i}`), TYPE.A, 60, address);
    },
  };
  for (const write of Object.values(kinds)) stepsAtMost(1 / 5, () => changing(old, write));
});
