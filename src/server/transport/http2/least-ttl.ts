/** Computes how long a reply may be cached, directly from its bytes. */
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { readTtl, Records } from '../../wire/records.ts';
import { SECTION } from '../../wire/writer.ts';

/** Seconds for which a failure, or a reply without records, may be cached. */
const FAILURE_TTL = 5;
/** Maximum number of seconds for which any reply may be cached. */
const TTL_MAX = 3600;

const records = new Records();

/**
 * Returns the number of seconds for which an HTTP cache may store the message `bytes[start, end)`. This is the lowest
 * TTL in the message. For a negative reply it is also limited by the SOA's minimum (RFC 8484, section 5.1).
 */
export function leastTtl(bytes: Uint8Array, start: number, end: number): number {
  const rcode = bytes[start + 3]! & FLAG.RCODE;
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return FAILURE_TTL;
  let least = TTL_MAX;
  let answered = false;
  let found = false;
  for (records.over(bytes, start, end); records.next();) {
    if (records.type === TYPE.OPT) continue;
    found = true;
    answered ||= records.section === SECTION.answer;
    least = Math.min(least, records.writtenTtl);
    if (records.type === TYPE.SOA && !answered && records.dataLength >= 4)
      least = Math.min(least, readTtl(bytes, records.dataAt + records.dataLength - 4));
  }
  return found ? least : FAILURE_TTL;
}
