import { copyBytes } from '../base/copy-bytes.ts';
import { FLAG, HEADER, RCODE } from '../wire/iana.ts';
import { LOWER } from '../wire/name.ts';
import type { Query } from '../wire/query.ts';
import { Slab } from '../wire/slab.ts';

/**
 * Whether `bytes[start, end)` is a reply to `query` as it was sent with `id`: that id, QR set, the same question (letter case
 * does not matter). A bare header that says why there is nothing (FORMERR, SERVFAIL, NOTIMP, REFUSED) passes too: servers
 * that could not read the question send it.
 */
export function isReplyTo(
  query: Query,
  id: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  if (end - start < HEADER.SIZE) return false;
  if (((bytes[start]! << 8) | bytes[start + 1]!) !== id) return false;
  if ((bytes[start + 2]! & (FLAG.QR >> 8)) === 0) return false;
  const questions = (bytes[start + 4]! << 8) | bytes[start + 5]!;
  if (questions === 0) return isRefusal(bytes, start);
  return questions === 1 && isSameQuestion(query, bytes, start + HEADER.SIZE, end);
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

/** Memory of its own for each would cost more than all the rest of an exchange. */
const taken = new Slab();

/** A copy of the reply under the query's own id; a view of memory that is shared, so not for keeping. */
export function takeReply(
  query: Query,
  bytes: Uint8Array,
  start: number,
  end: number,
): Uint8Array<ArrayBuffer> {
  const begin = taken.put(bytes, start, end);
  const copy = taken.bytes.subarray(begin, begin + end - start);
  copy[0] = query.id >> 8;
  copy[1] = query.id & 0xff;
  return copy;
}
