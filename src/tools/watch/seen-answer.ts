/** An answer in the form used for comparisons, without TTLs, order, signatures and serials. */
import { hashBytes } from '../../server/base/hash.ts';
import { FLAG, HEADER, rcodeName, TYPE, typeName } from '../../server/wire/iana.ts';
import { readMessage, type DnsRecord } from '../../server/wire/message.ts';
import { printData } from '../../server/wire/print.ts';
import { ReadError } from '../../server/wire/reader.ts';
import type { ReloadOutcome } from './reload-shape.ts';

/** The number of an answer's records to store, and their total length in characters. A TXT record may have 64 KiB. */
const RECORDS_MAX = 16;
export const RECORD_CHARACTERS_MAX = 512;
/** Longer record data is cut, in characters. */
const DATA_MAX = 120;
/** The size in bytes of a record's type, class, TTL and length. */
const FIXED_BYTES = 10;

export interface SeenAnswer extends ReloadOutcome {
  /** Equal answers have the same text. */
  readonly text: string;
}

/**
 * Returns a number that is the same for equal answers, so that a repeated answer is cheap to detect. Equal answers may
 * still have different numbers, because names in records can be compressed differently.
 * @returns -1 for a truncated or malformed reply, which has no answer to compare
 */
export function answerHash(reply: Uint8Array): number {
  if (reply.length < HEADER.SIZE || (reply[2]! & (FLAG.TC >> 8)) !== 0) return -1;
  const rcode = reply[3]! & FLAG.RCODE;
  let at: number = HEADER.SIZE;
  for (let left = (reply[4]! << 8) | reply[5]!; left > 0; left--) {
    at = afterName(reply, at) + 4;
    if (at > reply.length) return -1;
  }
  let sum = rcode;
  for (let left = (reply[6]! << 8) | reply[7]!; left > 0; left--) {
    const type = afterName(reply, at);
    const data = type + FIXED_BYTES;
    if (data > reply.length) return -1;
    const end = data + ((reply[data - 2]! << 8) | reply[data - 1]!);
    if (end > reply.length) return -1;
    // A sum does not depend on the order.
    sum += (hashBytes(reply, data, end) ^ ((reply[type]! << 8) | reply[type + 1]!)) >>> 0;
    at = end;
  }
  return sum % 2 ** 32;
}

/** Returns the position after a name, or one beyond the end of the message if the name is malformed. */
function afterName(bytes: Uint8Array, start: number): number {
  for (let at = start; at < bytes.length;) {
    const size = bytes[at]!;
    if (size >= 0xc0) return at + 2;
    if (size === 0) return at + 1;
    at += size + 1;
  }
  return bytes.length + 1;
}

/** Reads the answer in a reply, or returns null if it is malformed. */
export function readAnswer(reply: Uint8Array): SeenAnswer | null {
  try {
    const { rcode, answer } = readMessage(reply);
    const all = answer
      .filter(({ type }) => type !== TYPE.RRSIG)
      .map(recordText)
      .toSorted();
    const name = rcodeName(rcode);
    const records = firstOf(all);
    const more = all.length - records.length;
    // The records that are not kept still count.
    const rest = more === 0 ? '' : ` and ${more} more, ${textHash(all.join('\n'))}`;
    return { rcode: name, records, more, text: `${name} ${records.join('\n')}${rest}` };
  } catch (error) {
    if (error instanceof ReadError) return null;
    throw error;
  }
}

/** Returns the first records, as many as fit. */
export function firstOf(all: readonly string[]): readonly string[] {
  let characters = 0;
  return all
    .slice(0, RECORDS_MAX)
    .filter((text) => (characters += text.length) <= RECORD_CHARACTERS_MAX);
}

function textHash(text: string): number {
  const bytes = new TextEncoder().encode(text);
  return hashBytes(bytes, 0, bytes.length);
}

/** Servers preserve the spelling of a question, so names are compared in lower case. */
function recordText({ type, data }: DnsRecord): string {
  const text = printData(type, data);
  const shown =
    type === TYPE.SOA
      ? // The serial changes with every change to the zone.
        text.toLowerCase().split(' ').slice(0, 2).join(' ')
      : namesOnly.has(type)
        ? text.toLowerCase()
        : text;
  const cut = shown.length > DATA_MAX ? `${shown.slice(0, DATA_MAX)}…` : shown;
  return `${typeName(type)} ${cut}`;
}

/** Types whose data consists of names and numbers. */
const namesOnly: ReadonlySet<number> = new Set([
  TYPE.CNAME,
  TYPE.DNAME,
  TYPE.NS,
  TYPE.PTR,
  TYPE.MX,
  TYPE.SRV,
]);
