import { RCODE } from '../wire/iana.ts';
import type { Query, Triage } from '../wire/query.ts';
import type { Reply } from '../wire/reply.ts';
import { STAMP_ROOM, stampRejection } from '../wire/stamp.ts';

/** The room that `stamp` may use for this reply, in bytes. */
export function roomFor(reply: Reply): number {
  return reply.end - reply.start + STAMP_ROOM;
}

/** Bytes of a buffer in which any reply fits, several times. */
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
