import { FLAG, HEADER, RCODE, TYPE } from '../wire/iana.ts';
import { skipName } from '../wire/skip.ts';

/** What a failure, or a reply without records, may be kept for, seconds. */
const FAILURE_TTL = 5;
const MOST_TTL = 3600;

/** How long an HTTP cache may keep the message, seconds: its lowest TTL; of a negative reply also the SOA's minimum. */
export function leastTtl(message: Uint8Array): number {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const rcode = message[3]! & FLAG.RCODE;
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return FAILURE_TTL;
  let at: number = HEADER.SIZE;
  for (let i = view.getUint16(HEADER.QDCOUNT); i > 0; i--) {
    at = skipName(message, at, message.length) + 4;
  }
  const answers = view.getUint16(HEADER.ANCOUNT);
  const records = answers + view.getUint16(HEADER.NSCOUNT) + view.getUint16(HEADER.ARCOUNT);
  let least = MOST_TTL;
  let found = 0;
  for (let i = 0; i < records; i++) {
    at = skipName(message, at, message.length);
    if (at + 10 > message.length) break;
    const type = view.getUint16(at);
    const end = at + 10 + view.getUint16(at + 8);
    if (end > message.length) break;
    if (type !== TYPE.OPT) {
      found++;
      least = Math.min(least, view.getUint32(at + 4));
      if (type === TYPE.SOA && answers === 0) least = Math.min(least, view.getUint32(end - 4));
    }
    at = end;
  }
  return found === 0 ? FAILURE_TTL : least;
}
