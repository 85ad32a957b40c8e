/** The parts of an entry's key other than its name and type, and the parts of a reply that are not stored. */
import { FLAG, HEADER } from '../../wire/iana.ts';
import { LOWER } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';

/** Multipliers that spread the four client kinds (DO, CD) over the table. */
const SALTS = [0, 0x1e3779b9, 0x2c1b3c6d, 0x197d22e3];

/** Returns the client kind, 0 to 3, from the DO and CD bits. Entries are separate for each kind. */
export function variantOf(query: Query): number {
  return (query.dnssecOk ? 1 : 0) | ((query.flags & FLAG.CD) >> 3);
}

/** Returns a 30-bit hash of the name for this client kind. */
export function hashOf(query: Query, variant: number): number {
  return query.hash ^ SALTS[variant]!;
}

/** The only reserved header bit that has no meaning (RFC 6895 section 2.1). */
const Z = 0x40;

/** Sets AA and the given result code, clears TC, RD, Z, CD and the ID, and converts the question to lower case. */
export function clean(bytes: Uint8Array, start: number, nameLength: number, rcode: number): void {
  bytes[start] = 0;
  bytes[start + 1] = 0;
  bytes[start + 2] = (bytes[start + 2]! & ~((FLAG.TC | FLAG.RD) >> 8)) | (FLAG.AA >> 8);
  bytes[start + 3] = (bytes[start + 3]! & ~(Z | FLAG.CD | FLAG.RCODE)) | (rcode & FLAG.RCODE);
  const end = start + HEADER.SIZE + nameLength;
  for (let at = start + HEADER.SIZE; at < end; at++) bytes[at] = LOWER[bytes[at]!]!;
}
