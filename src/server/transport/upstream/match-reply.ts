import { FLAG, HEADER, RCODE } from '../../wire/iana.ts';
import type { Query } from '../query.ts';

/**
 * The relation of a received message to a query:
 *
 * - `reply`: its id and opcode, QR set, and the same question (ignoring case). Or only a header with an error (FORMERR,
 *   SERVFAIL, NOTIMP, REFUSED), from a server that could not parse the question
 * - `garbled`: its id, but no readable question. This ends the wait, because most likely only the upstream knows the id
 * - `stray`: anything else, late or forged
 */
export type Match = 'reply' | 'garbled' | 'stray';

/** Compares `bytes[start, end)` with `query`, which was sent with this `id`. */
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

/** Returns true for a complete question. Its name cannot be compressed, because no name precedes it. */
function isQuestion(bytes: Uint8Array, at: number, end: number): boolean {
  while (at < end && bytes[at]! !== 0) {
    if (bytes[at]! > 63) return false;
    at += bytes[at]! + 1;
  }
  return at + 5 <= end;
}
