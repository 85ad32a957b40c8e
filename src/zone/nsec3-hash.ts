import { TYPE } from '../wire/iana.ts';
import { Sha1Message } from './sha1.ts';
import type { ZoneData } from './zone-data.ts';

/** How a zone's names are hashed (RFC 5155 section 4). */
export interface HashParts {
  readonly iterations: number;
  readonly salt: Uint8Array;
}

/**
 * Iterations that are made: a name that nobody has asked for before costs 0.05 ms with so many, and
 * 20 ms with 65 535. RFC 9276 wants none; validators take a zone with more than 150 for one that is
 * not signed, and signers make none.
 */
export const ITERATIONS_MAX = 150;

/** What the apex says; SHA-1 is the only algorithm there is. */
export function readHashParts(zone: ZoneData): HashParts {
  if (!zone.find(0, TYPE.NSEC3PARAM)) return { iterations: 0, salt: new Uint8Array(0) };
  const at = zone.varint(zone.recordsAt);
  const { data } = zone;
  const iterations = (data[at + 2]! << 8) | data[at + 3]!;
  return { iterations, salt: data.slice(at + 5, at + 5 + data[at + 4]!) };
}

const DIGITS = Buffer.from('0123456789abcdefghijklmnopqrstuv');
const LENGTH = 32;
const label = new Uint8Array(1 + LENGTH);
const digest = new Uint8Array(20);

/**
 * The label that the hash of a name (wire form, lower case, `name[at, end)`) makes: length byte and
 * base32hex; good until the next call.
 */
export function hashName(
  name: Uint8Array,
  at: number,
  end: number,
  { iterations, salt }: HashParts,
): Uint8Array {
  const first = new Sha1Message(end - at + salt.length);
  for (let i = at; i < end; i++) first.bytes[i - at] = name[i]!;
  first.bytes.set(salt, end - at);
  first.digest(digest);
  if (iterations > 0) {
    const again = new Sha1Message(digest.length + salt.length);
    again.bytes.set(salt, digest.length);
    again.bytes.set(digest);
    for (let i = 1; i < iterations; i++) again.digest(again.bytes);
    again.digest(digest);
  }
  label[0] = LENGTH;
  let held = 0;
  let bits = 0;
  let to = 1;
  for (const byte of digest) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; bits -= 5) label[to++] = DIGITS[(held >> (bits - 5)) & 31]!;
  }
  return label;
}
