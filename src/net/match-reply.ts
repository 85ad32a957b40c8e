import { FLAG, HEADER, RCODE } from '../wire/iana.ts';
import type { Query } from '../wire/query.ts';

/**
 * What a message is to a query:
 *
 * - `reply`: that id and opcode, QR set, the same question (letter case does not matter); or a bare header that says why there
 *   is nothing (FORMERR, SERVFAIL, NOTIMP, REFUSED), as servers send it that could not read the question
 * - `garbled`: that id, but no question that can be read. It ends the wait: only the upstream is likely to know the id
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
  if (questions === 1 && fits && query.isAskedAt(bytes, at, end)) return 'reply';
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

/** Whether a whole question stands there: the first name of a message has nothing to point at. */
function isQuestion(bytes: Uint8Array, at: number, end: number): boolean {
  while (at < end && bytes[at]! !== 0) {
    if (bytes[at]! > 63) return false;
    at += bytes[at]! + 1;
  }
  return at + 5 <= end;
}
