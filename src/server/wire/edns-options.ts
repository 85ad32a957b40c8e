/** EDNS options as consecutive bytes, the way they appear in OPT (RFC 6891 section 6.1.2). No objects are created. */
import { OPTION } from './iana.ts';

/** Returns true if `bytes[at, end)` consists of complete options. */
export function areOptions(bytes: Uint8Array, at: number, end: number): boolean {
  while (at < end) {
    if (at + 4 > end) return false;
    at += 4 + ((bytes[at + 2]! << 8) | bytes[at + 3]!);
  }
  return at === end;
}

/** Returns the data of the first EDNS option `code` in `bytes[at, end)`, or null. */
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
 * Returns true if a query's option is echoed in the reply when no plugin wrote any options (as in CoreDNS). An option
 * that cannot have the given `length` is not echoed, because the reply would then be malformed as well (RFC 7314,
 * 7828). A COOKIE is ignored, as it is by any server that does not implement cookies (RFC 7873 section 5.2).
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
