import { sharedBytes } from '../base/shared-memory.ts';
import type { Slices } from '../base/slices.ts';
import { NAME_MAX } from '../wire/name.ts';
import { GrowingBytes } from './growing.ts';
import { serialIn } from './zone-builder.ts';
import type { PackedZone } from './packed-zone.ts';
import { RecordCursor } from './record-cursor.ts';
import { putRecord, soaDataIn, trimmed } from './stored-record.ts';
import { ZoneData } from './zone-data.ts';
import { compareLabels } from './zone-index.ts';

/**
 * The changes from one version of a zone to the next (RFC 1995). The removed records are followed by the added ones, in
 * uncompressed wire form: owner, type, class, TTL, length and data. They are in shared memory that never changes.
 */
export interface Difference {
  readonly from: number;
  readonly to: number;
  /** The older version's SOA record, followed by all other removed records. */
  readonly removed: Uint8Array;
  /** The newer version's SOA record, followed by all other added records. */
  readonly added: Uint8Array;
}

/** Maximum size in bytes for comparing the records of a name as sets. */
const NAME_BYTES_MAX = 4 * 1024 * 1024;

/** Bit mask for the number of names after which the work may pause. */
const NAME_SLICE = 0x3f;

/**
 * Computes the difference between two versions of a zone, in slices. Most names have the same records in both, so they
 * are skipped in packed form.
 * @returns null if the difference would be larger than the limit, or a name has too many records
 */
export function* differenceOf(
  old: PackedZone,
  now: PackedZone,
  mostBytes: number,
): Slices<readonly Difference[] | null> {
  const before = new NodeByNode(old);
  const after = new NodeByNode(now);
  const removed = new GrowingBytes();
  const added = new GrowingBytes();
  // Both begin with their SOA record, which has a different serial.
  writeSoa(removed, before.zone);
  writeSoa(added, after.zone);
  for (let steps = 1; before.isThere || after.isThere; steps++) {
    if ((steps & NAME_SLICE) === 0) yield;
    if (removed.length + added.length > mostBytes) return null;
    const order = before.compare(after);
    if (order === 0 && !before.isSame(after) && !compareRecords(before, after, removed, added))
      return null;
    if (order < 0) writeRecords(removed, before);
    if (order > 0) writeRecords(added, after);
    if (order <= 0) before.next();
    if (order >= 0) after.next();
  }
  if (removed.length + added.length > mostBytes) return null;
  return [{ from: old.serial, to: now.serial, removed: shared(removed), added: shared(added) }];
}

/** Iterates over the names in a zone in canonical order. */
class NodeByNode {
  readonly zone: ZoneData;
  readonly #size: number;
  node = 0;
  readonly owner: Uint8Array = new Uint8Array(NAME_MAX);
  length: number;

  constructor(packed: PackedZone) {
    this.zone = new ZoneData(packed);
    this.#size = this.zone.size;
    this.length = this.zone.name(0, this.owner);
  }

  get isThere(): boolean {
    return this.node < this.#size;
  }

  next(): void {
    if (++this.node < this.#size) this.length = this.zone.name(this.node, this.owner);
  }

  /** Compares the two names. The end comes after all names. */
  compare(other: NodeByNode): number {
    if (!this.isThere) return 1;
    if (!other.isThere) return -1;
    return compareOwners(this.owner, this.length, other.owner, other.length);
  }

  /** Returns true if both names are spelled the same and have the same RRsets. */
  isSame(other: NodeByNode): boolean {
    const { length } = this;
    if (length !== other.length) return false;
    for (let i = 0; i < length; i++) if (this.owner[i] !== other.owner[i]) return false;
    const at = this.zone.setsAt(this.node);
    const there = other.zone.setsAt(other.node);
    const size = this.zone.at(this.node + 1) - at;
    if (size !== other.zone.at(other.node + 1) - there) return false;
    const a = this.zone.data;
    const b = other.zone.data;
    for (let i = 0; i < size; i++) if (a[at + i] !== b[there + i]) return false;
    return true;
  }

  /** Its records except the SOA. */
  records(): RecordCursor {
    return new RecordCursor(this.zone, this.node);
  }
}

/**
 * Compares a name's records as sets.
 * @returns false if there are too many
 */
function compareRecords(
  before: NodeByNode,
  after: NodeByNode,
  removed: GrowingBytes,
  added: GrowingBytes,
): boolean {
  const olds = new Map<string, Uint8Array>();
  let size = 0;
  for (const cursor = before.records(); cursor.next();) {
    const bytes = recordBytes(before.zone, cursor);
    size += bytes.length;
    if (size > NAME_BYTES_MAX) return false;
    olds.set(Buffer.from(bytes).toString('latin1'), bytes);
  }
  for (const cursor = after.records(); cursor.next();) {
    const bytes = recordBytes(after.zone, cursor);
    if (!olds.delete(Buffer.from(bytes).toString('latin1'))) added.push(bytes);
  }
  for (const bytes of olds.values()) removed.push(bytes);
  return true;
}

function writeSoa(to: GrowingBytes, zone: ZoneData): void {
  const cursor = new RecordCursor(zone);
  cursor.next();
  writeRecord(to, zone, cursor);
}

function writeRecords(to: GrowingBytes, at: NodeByNode): void {
  for (const cursor = at.records(); cursor.next();) writeRecord(to, at.zone, cursor);
}

/** Creates a difference from the received records. Both of its parts begin with an SOA record. */
export function difference(removed: GrowingBytes, added: GrowingBytes): Difference {
  return {
    from: serialIn(soaDataIn(removed.written)),
    to: serialIn(soaDataIn(added.written)),
    removed: shared(removed),
    added: shared(added),
  };
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
  putRecord(to, trimmed(owner), type, ttl, data.subarray(at, at + length));
}

/** Compares two names in canonical order (RFC 4034 section 6.1). */
function compareOwners(a: Uint8Array, aLength: number, b: Uint8Array, bLength: number): number {
  const aCount = startsOf(a, aLength, aStarts);
  const bCount = startsOf(b, bLength, bStarts);
  for (let i = 1; i <= Math.min(aCount, bCount); i++) {
    const aAt = aStarts[aCount - i]!;
    const difference = compareLabels(a, aAt, b, bStarts[bCount - i]!);
    if (difference !== 0) return difference;
  }
  return aCount - bCount;
}

const aStarts = new Uint8Array(128);
const bStarts = new Uint8Array(128);

/**
 * Writes the positions of the labels in a name.
 * @returns the number of labels
 */
function startsOf(name: Uint8Array, length: number, to: Uint8Array): number {
  let count = 0;
  for (let at = 0; at < length - 1; at += name[at]! + 1) to[count++] = at;
  return count;
}
