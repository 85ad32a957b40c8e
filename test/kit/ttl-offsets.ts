import { findTtls } from '../../src/wire/records.ts';

/** Where the TTLs of all records of a message but OPT stand, from its start: `Reply.ttlAt`. */
export function ttlOffsets(bytes: Uint8Array, start = 0, end: number = bytes.length): Uint16Array {
  const found: number[] = [];
  findTtls(found, bytes, start, end);
  return Uint16Array.from(found);
}
