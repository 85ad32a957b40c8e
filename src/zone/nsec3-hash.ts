import { hash } from 'node:crypto';
import { TYPE } from '../wire/iana.ts';
import type { ZoneData } from './zone-data.ts';

/** How a zone's names are hashed (RFC 5155 section 4). */
export interface HashParts {
  readonly iterations: number;
  readonly salt: Uint8Array;
}

/**
 * Iterations that are made: a reply takes up to four hashes, with 65 535 iterations a second of a processor. RFC 9276 wants none, and validators take more
 * than some hundred for a zone that is not signed.
 */
export const ITERATIONS_MAX = 500;

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

/**
 * The label that the hash of a name (wire form, lower case, `name[at, end)`) makes: length byte and base32hex; good until the next
 * call.
 */
export function hashName(
  name: Uint8Array,
  at: number,
  end: number,
  { iterations, salt }: HashParts,
): Uint8Array {
  let digest = hash('sha1', Buffer.concat([name.subarray(at, end), salt]), 'buffer');
  for (let i = 0; i < iterations; i++) {
    digest = hash('sha1', salt.length === 0 ? digest : Buffer.concat([digest, salt]), 'buffer');
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
