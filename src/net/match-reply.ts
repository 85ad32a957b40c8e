import { copyBytes } from '../base/copy-bytes.ts';
import { FLAG, HEADER, RCODE } from '../wire/iana.ts';
import { LOWER } from '../wire/name.ts';
import type { Query } from '../wire/query.ts';

/**
 * What a message is to a query:
 *
 * - `reply`: that id and opcode, QR set, the same question (letter case does not matter); or a bare header that says why there
 *   is nothing (FORMERR, SERVFAIL, NOTIMP, REFUSED), as servers send it that could not read the question
 * - `garbled`: that id, but no question that could be read: who knows the id has nothing better to say
 * - `stray`: anything else, late or forged
 */
export type Match = 'reply' | 'garbled' | 'stray';

/** What `bytes[start, end)` is to `query` as it was sent with `id`. */
export function matchReply(
  query: Query,
  id: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): Match {
  if (end - start < HEADER.SIZE) return 'stray';
  if (((bytes[start]! << 8) | bytes[start + 1]!) !== id) return 'stray';
  const wanted = (FLAG.QR | (query.flags & FLAG.OPCODE)) >> 8;
  const fits = (bytes[start + 2]! & ((FLAG.QR | FLAG.OPCODE) >> 8)) === wanted;
  const questions = (bytes[start + 4]! << 8) | bytes[start + 5]!;
  const at = start + HEADER.SIZE;
  if (questions === 1 && fits && isSameQuestion(query, bytes, at, end)) return 'reply';
  if (questions === 0) return !fits ? 'stray' : isRefusal(bytes, start) ? 'reply' : 'garbled';
  return questions === 1 && isQuestion(bytes, at, end) ? 'stray' : 'garbled';
}

function isRefusal(bytes: Uint8Array, start: number): boolean {
  const rcode = bytes[start + 3]! & FLAG.RCODE;
  if (bytes[start + 6] !== 0 || bytes[start + 7] !== 0) return false;
  return (
    rcode === RCODE.FORMERR ||
    rcode === RCODE.SERVFAIL ||
    rcode === RCODE.NOTIMP ||
    rcode === RCODE.REFUSED
  );
}

function isSameQuestion(query: Query, bytes: Uint8Array, at: number, end: number): boolean {
  const { folded, nameLength } = query;
  if (at + nameLength + 4 > end) return false;
  // Length bytes are below 64, so folding leaves them alone; a compressed name differs in its first byte.
  for (let i = 0; i < nameLength; i++) if (LOWER[bytes[at + i]!] !== folded[i]) return false;
  const after = at + nameLength;
  return (
    ((bytes[after]! << 8) | bytes[after + 1]!) === query.type &&
    ((bytes[after + 2]! << 8) | bytes[after + 3]!) === query.class
  );
}

/** Whether a whole question stands there: the first name of a message has nothing to point at. */
function isQuestion(bytes: Uint8Array, at: number, end: number): boolean {
  while (at < end && bytes[at]! !== 0) {
    if (bytes[at]! > 63) return false;
    at += bytes[at]! + 1;
  }
  return at + 5 <= end;
}

/** Writes the query as it goes upstream: its bytes, its present flags and those for upstreams, another id. @returns the length */
export function writeQuery(query: Query, id: number, out: Uint8Array, at: number): number {
  const size = query.end - query.start;
  copyBytes(query.bytes, query.start, out, at, size);
  out[at] = id >> 8;
  out[at + 1] = id & 0xff;
  const flags = query.flags | query.upstreamFlags;
  out[at + 2] = flags >> 8;
  out[at + 3] = flags & 0xff;
  return size;
}
