/** Finds the TTLs in a message. */
import { TYPE } from '../../src/server/wire/iana.ts';
import { Records } from '../../src/server/wire/records.ts';

const records = new Records();

/** The offsets of all TTLs from the start of the message, except OPT's: `Reply.ttlAt`. */
export function ttlOffsets(bytes: Uint8Array, start = 0, end: number = bytes.length): Uint16Array {
  const found: number[] = [];
  for (records.over(bytes, start, end); records.next();) {
    if (records.type !== TYPE.OPT) found.push(records.ttlAt - start);
  }
  return Uint16Array.from(found);
}
