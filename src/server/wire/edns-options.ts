/**
 * EDNS options as bytes, one after the other, as OPT holds them (RFC 6891 section 6.1.2). No
 * objects are made.
 */
import { OPTION } from './iana.ts';

/** True if `bytes[at, end)` consists of whole options. */
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
 * True if an option of a query comes back in the reply when no plugin wrote options of its own (as
 * CoreDNS does). An option whose data cannot have the given `length` is not echoed, because the
 * reply would then be malformed as well (RFC 7314, 7828). A COOKIE is ignored, as by any server
 * that has none of its own (RFC 7873 section 5.2).
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
    default:
      return false;
  }
}
