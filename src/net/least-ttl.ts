import { FLAG, HEADER, RCODE, TYPE } from '../wire/iana.ts';
import { skipName } from '../wire/skip.ts';

/** What a failure, or a reply without records, may be kept for, seconds. */
const FAILURE_TTL = 5;
const MOST_TTL = 3600;

/**
 * How long an HTTP cache may keep the message `bytes[start, end)`, seconds: its lowest TTL; of a negative reply also the SOA's
 * minimum (RFC 8484 section 5.1).
 */
export function leastTtl(bytes: Uint8Array, start: number, end: number): number {
  const rcode = bytes[start + 3]! & FLAG.RCODE;
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return FAILURE_TTL;
  let at: number = start + HEADER.SIZE;
  for (let i = read16(bytes, start + HEADER.QDCOUNT); i > 0; i--) at = skipName(bytes, at, end) + 4;
  const answers = read16(bytes, start + HEADER.ANCOUNT);
  let records =
    answers + read16(bytes, start + HEADER.NSCOUNT) + read16(bytes, start + HEADER.ARCOUNT);
  let least = MOST_TTL;
  let found = false;
  for (; records > 0; records--) {
    at = skipName(bytes, at, end);
    if (at + 10 > end) break;
    const type = read16(bytes, at);
    const next = at + 10 + read16(bytes, at + 8);
    if (next > end) break;
    if (type !== TYPE.OPT) {
      found = true;
      least = Math.min(least, read32(bytes, at + 4));
      if (type === TYPE.SOA && answers === 0) least = Math.min(least, read32(bytes, next - 4));
    }
    at = next;
  }
  return found ? least : FAILURE_TTL;
}

function read16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

function read32(bytes: Uint8Array, at: number): number {
  return read16(bytes, at) * 65_536 + read16(bytes, at + 2);
}
