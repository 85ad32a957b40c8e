/** Records in message format without compression: owner, type, class, TTL, length and data. */
import { CLASS } from '../wire/iana.ts';
import type { WireName } from '../wire/name.ts';
import type { GrowingBytes } from './growing.ts';

/** Returns the name that the bytes start with. */
export function trimmed(owner: Uint8Array): WireName {
  let end = 0;
  while (owner[end]! > 0) end += owner[end]! + 1;
  return owner.subarray(0, end + 1);
}

/** Writes a record in message format, without compression. */
export function putRecord(
  to: GrowingBytes,
  owner: WireName,
  type: number,
  ttl: number,
  data: Uint8Array,
): void {
  to.push(owner);
  to.u16(type);
  to.u16(CLASS.IN);
  to.u32(ttl);
  to.u16(data.length);
  to.push(data);
}

/** Returns the type in an encoded record, its position, and the TTL. */
export function partsOf(bytes: Uint8Array): { fields: number; type: number; ttl: number } {
  const fields = trimmed(bytes).length;
  const word = (at: number): number => (bytes[at]! << 8) | bytes[at + 1]!;
  const ttl = ((word(fields + 4) << 16) | word(fields + 6)) >>> 0;
  return { fields, type: word(fields), ttl };
}

/** Returns the data of the SOA record that starts one part of a difference. */
export function soaDataIn(records: Uint8Array): Uint8Array {
  const at = partsOf(records).fields + 10;
  return records.subarray(at, at + ((records[at - 2]! << 8) | records[at - 1]!));
}
