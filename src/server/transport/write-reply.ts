/** The output buffer for stream replies, and replies that are created without a plugin. */
import { RCODE } from '../wire/iana.ts';
import type { Query } from './query.ts';
import type { Triage } from '../wire/query-message.ts';
import { stampRejection } from '../wire/stamp.ts';

/** Room for a header and the longest question. */
export const REJECTION_ROOM = 512;

/**
 * The buffer in which stream replies are assembled before they are sent, shared by all of a thread's connections. It is
 * empty at the end of each turn, and has room for several replies of any size.
 */
export const arena: Buffer = Buffer.allocUnsafeSlow(256 * 1024);

/**
 * Writes the reply to a message that plugins must not see.
 * @returns the number of bytes written
 */
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

/**
 * Writes SERVFAIL as a last resort, if `serve` throws despite its contract.
 * @returns the number of bytes written
 */
export function writeFailure(query: Query, out: Uint8Array, at: number): number {
  return stampRejection(query, RCODE.SERVFAIL, true, out, at);
}
