import { sharedBytes } from '../base/shared-memory.ts';
import type { Slices } from '../base/slices.ts';
import { CLASS } from '../wire/iana.ts';
import { LOWER, nameLength } from '../wire/name.ts';
import { GrowingBytes } from './growing.ts';
import { serialIn } from './zone-builder.ts';
import type { PackedZone } from './packed-zone.ts';
import { RecordCursor } from './record-cursor.ts';
import { ZoneData } from './zone-data.ts';

/**
 * What changed from one version of a zone to the next (RFC 1995): records taken out and put in, in
 * wire form without compression, one behind the other: owner, type, class, TTL, length, data.
 * Shared memory, never changed.
 */
export interface Difference {
  readonly from: number;
  readonly to: number;
  /** The SOA record of the older version, then the other records that went. */
  readonly removed: Uint8Array;
  /** The SOA record of the newer one, then the other records that came. */
  readonly added: Uint8Array;
}

/** Records of one name are compared as sets as long as they have so many bytes. */
const NAME_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The difference between two versions of a zone, found in slices.
 * @returns null: it would take more than so many bytes, or a name has too many to be compared
 */
export function* differenceOf(
  old: PackedZone,
  now: PackedZone,
  mostBytes: number,
): Slices<readonly Difference[] | null> {
  const before = new ZoneData(old);
  const after = new ZoneData(now);
  const removed = new GrowingBytes();
  const added = new GrowingBytes();
  const a = new RecordCursor(before);
  const b = new RecordCursor(after);
  // Both begin with their SOA records, which differ in the serial.
  a.next();
  b.next();
  writeRecord(removed, before, a);
  writeRecord(added, after, b);
  let moreA = a.next();
  let moreB = b.next();
  while (moreA || moreB) {
    yield;
    if (removed.length + added.length > mostBytes) return null;
    const order = !moreA ? 1 : !moreB ? -1 : compareOwners(a.owner, b.owner);
    if (order < 0) {
      writeRecord(removed, before, a);
      moreA = a.next();
    } else if (order > 0) {
      writeRecord(added, after, b);
      moreB = b.next();
    } else {
      // All of one name: those of both are compared as sets.
      const olds = new Map<string, Uint8Array>();
      const { node } = a;
      let size = 0;
      while (moreA && a.node === node) {
        const bytes = recordBytes(before, a);
        size += bytes.length;
        if (size > NAME_BYTES_MAX) return null;
        olds.set(Buffer.from(bytes).toString('latin1'), bytes);
        moreA = a.next();
      }
      const { node: same } = b;
      while (moreB && b.node === same) {
        const bytes = recordBytes(after, b);
        if (!olds.delete(Buffer.from(bytes).toString('latin1'))) added.push(bytes);
        moreB = b.next();
      }
      for (const bytes of olds.values()) removed.push(bytes);
    }
  }
  if (removed.length + added.length > mostBytes) return null;
  return [{ from: old.serial, to: now.serial, removed: shared(removed), added: shared(added) }];
}

/** A difference as it came over the wire: both parts begin with an SOA record. */
export function difference(removed: GrowingBytes, added: GrowingBytes): Difference {
  return {
    from: soaSerial(removed),
    to: soaSerial(added),
    removed: shared(removed),
    added: shared(added),
  };
}

function soaSerial({ bytes, length }: GrowingBytes): number {
  return serialIn(bytes.subarray(nameLength(bytes) + 10, length));
}

function shared({ bytes, length }: GrowingBytes): Uint8Array {
  const own = sharedBytes(length);
  own.set(bytes.subarray(0, length));
  return own;
}

function recordBytes(zone: ZoneData, cursor: RecordCursor): Uint8Array {
  const one = new GrowingBytes(cursor.length + 300);
  writeRecord(one, zone, cursor);
  return one.bytes.subarray(0, one.length);
}

function writeRecord(to: GrowingBytes, { data }: ZoneData, cursor: RecordCursor): void {
  const { owner, type, ttl, at, length } = cursor;
  to.push(owner.subarray(0, nameLength(owner)));
  to.u16(type);
  to.u16(CLASS.IN);
  to.u32(ttl);
  to.u16(length);
  to.push(data.subarray(at, at + length));
}

/** Canonical order of two names (RFC 4034 section 6.1). */
function compareOwners(a: Uint8Array, b: Uint8Array): number {
  const aStarts = startsOf(a);
  const bStarts = startsOf(b);
  for (let i = 1; i <= Math.min(aStarts.length, bStarts.length); i++) {
    const aAt = aStarts.at(-i)!;
    const bAt = bStarts.at(-i)!;
    const length = Math.min(a[aAt]!, b[bAt]!);
    for (let j = 1; j <= length; j++) {
      const difference = LOWER[a[aAt + j]!]! - LOWER[b[bAt + j]!]!;
      if (difference !== 0) return difference;
    }
    if (a[aAt] !== b[bAt]) return a[aAt]! - b[bAt]!;
  }
  return aStarts.length - bStarts.length;
}

function startsOf(name: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 0; name[at]! > 0; at += name[at]! + 1) starts.push(at);
  return starts;
}
