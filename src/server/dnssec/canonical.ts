/** Canonical form and order of names and records (RFC 4034 section 6). */
import { copyBytes } from '../base/copy-bytes.ts';
import { TYPE } from '../wire/iana.ts';
import { firstName, layoutOf } from '../wire/layout.ts';
import { LOWER, NAME_MAX, type WireName } from '../wire/name.ts';
import { expandName } from '../wire/records.ts';
import { endOfName } from '../wire/skip.ts';

/**
 * Types whose names are signed without changing their case (RFC 6840 section 5.1; RFC 4034 section 6.2 predates some of
 * them).
 */
const spelled: ReadonlySet<number> = new Set([TYPE.NSEC, TYPE.SVCB, TYPE.HTTPS]);

/**
 * Returns a copy of a record's data from a validated message in canonical form. Names are uncompressed, and in lower
 * case where that is required.
 * @param start start of the message, the base of compression pointers
 */
export function canonicalData(
  bytes: Uint8Array,
  start: number,
  at: number,
  length: number,
  type: number,
): Uint8Array {
  const shape = layoutOf(type);
  if (shape === undefined || shape.names === 0 || length === 0) return bytes.slice(at, at + length);
  const end = at + length;
  let from = firstName(bytes, start, at, end, shape);
  const parts = [bytes.subarray(at, from)];
  for (let left = shape.names; left > 0; left--) {
    const name = expandName(bytes, start, from);
    parts.push(spelled.has(type) ? name : name.map((byte) => LOWER[byte]!));
    from = endOfName(bytes, from);
  }
  parts.push(bytes.subarray(from, end));
  const plain = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let to = 0;
  for (const part of parts) {
    plain.set(part, to);
    to += part.length;
  }
  return plain;
}

/** The part that all signatures over an RRset share. */
export interface SignedSet {
  /** Lower case. */
  readonly owner: WireName;
  readonly type: number;
  /** The RRset's TTL in the signature, in seconds. */
  readonly originalTtl: number;
  /** Canonical data of its records, in any order. */
  readonly data: readonly Uint8Array[];
}

/**
 * Concatenates an RRset's records in the form that is signed, each of them once and in order (RFC 4034 sections 3.1.8.1
 * and 6.3).
 */
export function signedRecords({ owner, type, originalTtl, data }: SignedSet): Uint8Array {
  const each = data.length === 1 ? data : inOrder(data);
  const head = owner.length + 10;
  const bytes = new Uint8Array(each.reduce((sum, one) => sum + head + one.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const one of each) {
    copyBytes(owner, 0, bytes, at, owner.length);
    at += owner.length;
    view.setUint16(at, type);
    view.setUint16(at + 2, 1);
    view.setUint32(at + 4, originalTtl);
    view.setUint16(at + 8, one.length);
    copyBytes(one, 0, bytes, at + 10, one.length);
    at += 10 + one.length;
  }
  return bytes;
}

function inOrder(data: readonly Uint8Array[]): readonly Uint8Array[] {
  const sorted = data.toSorted((a, b) => Buffer.compare(a, b));
  return sorted.filter((one, at) => at === 0 || Buffer.compare(one, sorted[at - 1]!) !== 0);
}

/** Counts the labels in a name, without the root and without the `*` of a wildcard (RFC 4034 section 3.1.3). */
export function labelCount(name: WireName): number {
  let labels = 0;
  for (let at = 0; name[at] !== 0; at += name[at]! + 1) labels++;
  return name[0] === 1 && name[1] === 0x2a ? labels - 1 : labels;
}

/**
 * Returns a name right after `name` (lower case), so that at most names under `name` are in between. Usually, this is
 * `\000` under `name`. If that would be too long, it is the next name at the same level.
 */
export function nameBehind(name: WireName): WireName {
  if (name.length + 2 > NAME_MAX) return nameBeside(name);
  const behind = new Uint8Array(name.length + 2);
  behind[0] = 1;
  copyBytes(name, 0, behind, 2, name.length);
  return behind;
}

/** Returns the first name in canonical order that is not under `name` (lower case) and has no more labels. */
export function nameBeside(name: WireName): WireName {
  const length = name[0]!;
  if (length === 0) return name;
  if (length < 63 && name.length < NAME_MAX)
    return Uint8Array.of(
      length + 1,
      ...name.subarray(1, length + 1),
      0,
      ...name.subarray(length + 1),
    );
  for (let last = length; last > 0; last--) {
    const byte = name[last]!;
    if (byte === 0xff) continue;
    // Upper-case letters count as lower case, so `[` follows `@`.
    const next = byte === 0x40 ? 0x5b : byte + 1;
    return Uint8Array.of(last, ...name.subarray(1, last), next, ...name.subarray(length + 1));
  }
  return nameBeside(name.subarray(length + 1));
}
