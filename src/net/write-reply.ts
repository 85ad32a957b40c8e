/** Where replies to clients of streams are written, and those that no plugin makes. */
import { RCODE } from '../wire/iana.ts';
import type { Query, Triage } from '../wire/query.ts';
import { stampRejection } from '../wire/stamp.ts';

/** A header and the longest question, with room to spare. */
export const REJECTION_ROOM = 512;

/**
 * Where replies of streams are written before they leave. All connections of a thread share it: nothing in it outlives a
 * turn. Any reply fits, several times.
 */
export const arena: Buffer = Buffer.allocUnsafeSlow(256 * 1024);

/** What a message gets that no plugin is to see. @returns the length written */
export function writeRejection(
  triage: Exclude<Triage, 'serve' | 'ignore'>,
  query: Query,
  out: Uint8Array,
  at: number,
): number {
  return triage === 'formerr'
    ? stampRejection(query, RCODE.FORMERR, true, out, at)
    : stampRejection(query, RCODE.NOTIMP, false, out, at);
}

/** Writes SERVFAIL: the last resort when `serve` breaks its promise not to throw. @returns the length written */
export function writeFailure(query: Query, out: Uint8Array, at: number): number {
  return stampRejection(query, RCODE.SERVFAIL, true, out, at);
}
