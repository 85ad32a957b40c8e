/** The parts of an entry's key beside name and type, and the parts of a reply that are not stored. */
import { FLAG, HEADER } from '../../wire/iana.ts';
import { LOWER } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';

/** Spread the four kinds of clients (DO, CD) over the table. */
const SALTS = [0, 0x1e3779b9, 0x2c1b3c6d, 0x197d22e3];

/** The kind of the client, 0 to 3, by its DO and CD bits. Each kind has separate entries. */
export function variantOf(query: Query): number {
  return (query.dnssecOk ? 1 : 0) | ((query.flags & FLAG.CD) >> 3);
}

/** The hash of the name for this kind of client: 30 bits. */
export function hashOf(query: Query, variant: number): number {
  return query.hash ^ SALTS[variant]!;
}

/** The only reserved header bit (RFC 6895 section 2.1) without a meaning. */
const Z = 0x40;

/** AA on, TC, RD, Z and CD off, the result code as given, no id, the question in lower case. */
export function clean(bytes: Uint8Array, start: number, nameLength: number, rcode: number): void {
  bytes[start] = 0;
  bytes[start + 1] = 0;
  bytes[start + 2] = (bytes[start + 2]! & ~((FLAG.TC | FLAG.RD) >> 8)) | (FLAG.AA >> 8);
  bytes[start + 3] = (bytes[start + 3]! & ~(Z | FLAG.CD | FLAG.RCODE)) | (rcode & FLAG.RCODE);
  const end = start + HEADER.SIZE + nameLength;
  for (let at = start + HEADER.SIZE; at < end; at++) bytes[at] = LOWER[bytes[at]!]!;
}
