import { RCODE } from '../wire/iana.ts';
import type { Query, Triage } from '../wire/query.ts';
import type { Reply } from '../wire/reply.ts';
import { stampRejection } from '../wire/stamp.ts';

/** The most bytes that a message without echoed options needs: question, OPT, an extended error's text. */
const OVERHEAD = 1200;

/** The room that `stamp` may use for this reply to this query, in bytes. At most 200 KiB. */
export function roomFor(reply: Reply, query: Query): number {
  let room = reply.end - reply.start + OVERHEAD + query.optionsEnd - query.optionsStart;
  if (reply.options !== null) room += reply.options.length;
  if (reply.errors !== null) for (const error of reply.errors) room += 6 + 3 * error.text.length;
  return room;
}

/** Bytes of a buffer in which any reply fits. */
export const REPLY_ROOM = 256 * 1024;

/**
 * Writes what a message gets that no plugin is to see (reference: filters before any plugin).
 * @returns the length written; 0: nothing is sent.
 */
export function writeRejection(triage: Triage, query: Query, out: Uint8Array, at: number): number {
  if (triage === 'formerr') return stampRejection(query, RCODE.FORMERR, true, out, at);
  if (triage === 'notimp') return stampRejection(query, RCODE.NOTIMP, false, out, at);
  return 0;
}

/** Writes SERVFAIL: the last resort when `serve` breaks its promise not to throw. */
export function writeFailure(query: Query, out: Uint8Array, at: number): number {
  return stampRejection(query, RCODE.SERVFAIL, true, out, at);
}
