import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { atOnce } from '../base/slices.ts';
import { TYPE } from '../wire/iana.ts';
import { foldName, nameLength, parseName, printName } from '../wire/name.ts';
import { changedZone } from './changed-zone.ts';
import { Changes } from './changes.ts';
import { partsOf, putRecord, trimmed } from './stored-record.ts';
import { difference, differenceOf } from './difference.ts';
import { GrowingBytes } from './growing.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';
import { RecordCursor } from './record-cursor.ts';
import { ZoneBuilder } from './zone-builder.ts';
import { ZoneData } from './zone-data.ts';

const origin = parseName('example.org.');

interface Rec {
  readonly owner: Uint8Array;
  readonly type: number;
  readonly ttl: number;
  readonly data: Uint8Array;
}

const label = fc.constantFrom('a', 'A', 'b', 'bb', '*', 'ns', 'V0', 'v1', 'z');
const owner = fc
  .array(label, { maxLength: 3 })
  .map((labels) => parseName(`${[...labels, 'example.org'].join('.')}.`));
const type = fc.constantFrom(
  TYPE.A,
  TYPE.A,
  TYPE.TXT,
  TYPE.NS,
  TYPE.DS,
  TYPE.CNAME,
  TYPE.DNAME,
  TYPE.NSEC,
  TYPE.NSEC3,
  TYPE.RRSIG,
);
const record: fc.Arbitrary<Rec> = fc
  .tuple(owner, type, fc.constantFrom(60, 300), type, fc.nat(2))
  .map(([name, kind, ttl, covered, number]) => ({
    owner: name,
    type: kind,
    ttl,
    // A signature's first bytes are the covered type.
    data:
      kind === TYPE.RRSIG
        ? Uint8Array.of(covered >> 8, covered & 0xff, number)
        : Uint8Array.of(1, 0x61 + number, 0),
  }));

function soa(serial: number): Rec {
  const data = Buffer.alloc(22);
  data.writeUInt32BE(serial, 2);
  return { owner: origin, type: TYPE.SOA, ttl: 60, data };
}

/** Returns a record's identity, which is everything except its TTL and the case of its name. */
const keyOf = ({ owner: name, type: kind, data }: Rec): string =>
  `${printName(foldName(name))} ${kind} ${Buffer.from(data).toString('hex')}`;

function built(records: readonly Rec[]): PackedZone {
  const builder = new ZoneBuilder(origin);
  for (const { owner: name, type: kind, ttl, data } of records) builder.add(name, kind, ttl, data);
  return builder.pack();
}

function recordsOf(packed: PackedZone): Rec[] {
  const found: Rec[] = [];
  const zone = new ZoneData(packed);
  for (const cursor = new RecordCursor(zone); cursor.next();) {
    const { owner: name, type: kind, ttl, at, length } = cursor;
    const data = zone.data.slice(at, at + length);
    found.push({ owner: name.slice(0, nameLength(name)), type: kind, ttl, data });
  }
  return found;
}

function stored(records: readonly Rec[]): GrowingBytes {
  const bytes = new GrowingBytes();
  for (const { owner: name, type: kind, ttl, data } of records)
    putRecord(bytes, name, kind, ttl, data);
  return bytes;
}

/** Parses records written by `putRecord`. */
function listed(bytes: Uint8Array): Rec[] {
  const found: Rec[] = [];
  for (let at = 0; at < bytes.length;) {
    const name = trimmed(bytes.subarray(at));
    const { type: kind, ttl } = partsOf(bytes.subarray(at));
    const from = at + name.length + 10;
    at = from + ((bytes[from - 2]! << 8) | bytes[from - 1]!);
    found.push({ owner: name, type: kind, ttl, data: bytes.subarray(from, at) });
  }
  return found;
}

/** Derives the next version from the previous one. */
function changed(old: PackedZone, removed: readonly Rec[], added: readonly Rec[]): PackedZone {
  const to = soa(old.serial + 1);
  const step = difference(stored([soa(old.serial), ...removed]), stored([to, ...added]));
  const changes = atOnce(Changes.of(origin, [step]));
  return atOnce(changedZone(old, changes, to));
}

/** Builds the next version from all its records. */
function anew(old: PackedZone, removed: readonly Rec[], added: readonly Rec[]): PackedZone {
  // A record that is removed and added again stays listed where it was.
  const about = new Map<string, Rec | null>(removed.map((one) => [keyOf(one), null]));
  for (const one of added) about.set(keyOf(one), one);
  const [, ...others] = recordsOf(old);
  return built([
    ...others.filter((one) => !about.has(keyOf(one))),
    soa(old.serial + 1),
    ...[...about.values()].filter((one) => one !== null),
  ]);
}

describe('differences', () => {
  test('property: a version derived from the previous one equals, byte for byte, one built from all its records', () => {
    const steps = fc.array(
      fc.record({
        keep: fc.array(fc.nat(3), { minLength: 1, maxLength: 60 }),
        added: fc.array(record, { maxLength: 12 }),
      }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(fc.array(record, { maxLength: 60 }), steps, (first, all) => {
        let zone = built([soa(1), ...first]);
        for (const { keep, added } of all) {
          const [, ...there] = recordsOf(zone);
          const removed = there.filter((_, i) => keep[i % keep.length] === 0);
          const expected = anew(zone, removed, added);
          const found = changed(zone, removed, added);
          assert.deepEqual(found, expected);
          assert.equal(bytesOf(found), bytesOf(expected));
          zone = found;
        }
      }),
      { numRuns: 500 },
    );
  });

  test('property: the difference between two versions is their SOA records and the records that only one has', () => {
    const keys = (records: readonly Rec[]): string[] =>
      records.map(
        ({ owner: name, type: kind, ttl, data }) =>
          `${printName(name)} ${kind} ${ttl} ${Buffer.from(data).toString('hex')}`,
      );
    const without = (all: Set<string>, others: Set<string>): Set<string> =>
      new Set([...all].filter((one) => !others.has(one)));
    fc.assert(
      fc.property(
        fc.array(record, { maxLength: 60 }),
        fc.array(record, { maxLength: 12 }),
        fc.array(fc.nat(3), { minLength: 1, maxLength: 60 }),
        (first, added, keep) => {
          const old = built([soa(1), ...first]);
          const stays = first.filter((_, i) => keep[i % keep.length] !== 0);
          const now = built([soa(2), ...stays, ...added]);
          const [found] = atOnce(differenceOf(old, now, 1e6))!;
          const told = (bytes: Uint8Array): Set<string> => new Set(keys(listed(bytes)));
          const [a, b] = [new Set(keys(recordsOf(old))), new Set(keys(recordsOf(now)))];
          assert.deepEqual(told(found!.removed), without(a, b));
          assert.deepEqual(told(found!.added), without(b, a));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("a version with the same names has the previous version's hash table", () => {
    const a: Rec = {
      owner: parseName('a.example.org.'),
      type: TYPE.A,
      ttl: 60,
      data: Uint8Array.of(10, 0, 0, 1),
    };
    const old = built([soa(1), a]);
    const other = { ...a, data: Uint8Array.of(10, 0, 0, 2) };
    assert.equal(changed(old, [a], [other]).slots, old.slots);
    assert.notEqual(
      changed(old, [], [{ ...a, owner: parseName('b.example.org.') }]).slots,
      old.slots,
    );
  });
});
