/** EDNS options as they stand in OPT (RFC 6891 section 6.1.2), one after the other, without objects. */
import { OPTION } from './iana.ts';

/** Whether `bytes[at, end)` are options from the first byte to the last. */
export function areOptions(bytes: Uint8Array, at: number, end: number): boolean {
  while (at < end) {
    if (at + 4 > end) return false;
    at += 4 + ((bytes[at + 2]! << 8) | bytes[at + 3]!);
  }
  return at === end;
}

/** The data of the first EDNS option `code` in `bytes[at, end)`, or null. */
export function findOption(
  bytes: Uint8Array,
  at: number,
  end: number,
  code: number,
): Uint8Array | null {
  while (at + 4 <= end) {
    const found = (bytes[at]! << 8) | bytes[at + 1]!;
    const length = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    if (found === code) return bytes.subarray(at + 4, at + 4 + length);
    at += 4 + length;
  }
  return null;
}

/**
 * Options of a query that come back in the reply unless a plugin wrote its own (CoreDNS's habit). Those whose data cannot have
 * the `length` they claim stay away, for the reply would be malformed, too (RFC 7314, 7828, 7873).
 */
export function isEchoed(code: number, length: number): boolean {
  switch (code) {
    case OPTION.NSID:
    case OPTION.PADDING:
      return true;
    case OPTION.EXPIRE:
      return length === 0 || length === 4;
    case OPTION.KEEPALIVE:
      return length === 0 || length === 2;
    case OPTION.COOKIE:
      // The client's part alone, or with the server's of 8 to 32 bytes.
      return length === 8 || (length >= 16 && length <= 40);
    default:
      return false;
  }
}
