/** Parses IPv4 and IPv6 headers (RFC 791, RFC 8200), up to the payload. */
import { readUint32 } from '../../../../server/base/big-endian.ts';

export const PROTOCOL: {
  readonly ICMP: 1;
  readonly IPIP: 4;
  readonly TCP: 6;
  readonly UDP: 17;
  readonly IPV6: 41;
  readonly ICMP6: 58;
} = { ICMP: 1, IPIP: 4, TCP: 6, UDP: 17, IPV6: 41, ICMP6: 58 } as const;

/** IPv6 extension headers that may precede the payload. */
const EXTENSION = { HOPS: 0, ROUTING: 43, FRAGMENT: 44, AUTHENTICATION: 51, DESTINATION: 60 };
const EXTENSIONS_MAX = 8;

/** A reader reuses one object. */
export interface IpPacket {
  family: 4 | 6;
  /** The bytes that contain both addresses, 4 or 16 each, with the source first. */
  head: Uint8Array;
  addressesAt: number;
  protocol: number;
  ttl: number;
  /** The identification of an IPv4 packet or IPv6 fragment, or 0 if there is none. */
  id: number;
  /** The payload is `bytes[at, end)`. */
  bytes: Uint8Array;
  at: number;
  end: number;
  /** The number of bytes at the end that are missing from the capture. */
  missing: number;
  /** A fragment's position, and whether more follow. If it is not a fragment, these are 0 and false. */
  offset: number;
  more: boolean;
}

export function emptyPacket(): IpPacket {
  const bytes = new Uint8Array(0);
  return {
    family: 4,
    head: bytes,
    addressesAt: 0,
    protocol: 0,
    ttl: 0,
    id: 0,
    bytes,
    at: 0,
    end: 0,
    missing: 0,
    offset: 0,
    more: false,
  };
}

/**
 * Reads the IPv4 packet at `at`.
 * @returns false if it is malformed
 */
export function readIpv4(bytes: Uint8Array, at: number, end: number, into: IpPacket): boolean {
  if (at + 20 > end || bytes[at]! >> 4 !== 4) return false;
  const header = (bytes[at]! & 15) * 4;
  if (header < 20 || at + header > end) return false;
  // If it is 0, the network card segments the packet later and the capture has all of it.
  const total = (bytes[at + 2]! << 8) | bytes[at + 3]! || end - at;
  if (total < header) return false;
  const word = (bytes[at + 6]! << 8) | bytes[at + 7]!;
  into.family = 4;
  into.head = bytes;
  into.addressesAt = at + 12;
  into.protocol = bytes[at + 9]!;
  into.ttl = bytes[at + 8]!;
  into.id = (bytes[at + 4]! << 8) | bytes[at + 5]!;
  into.bytes = bytes;
  into.at = at + header;
  into.end = Math.min(end, at + total);
  into.missing = Math.max(0, at + total - end);
  into.offset = (word & 0x1fff) * 8;
  into.more = (word & 0x2000) !== 0;
  return true;
}

/**
 * Reads the IPv6 packet at `at`.
 * @returns false if it is malformed or its payload cannot be reached
 */
export function readIpv6(bytes: Uint8Array, at: number, end: number, into: IpPacket): boolean {
  if (at + 40 > end || bytes[at]! >> 4 !== 6) return false;
  const length = (bytes[at + 4]! << 8) | bytes[at + 5]! || end - at - 40;
  into.family = 6;
  into.head = bytes;
  into.addressesAt = at + 8;
  into.ttl = bytes[at + 7]!;
  into.id = 0;
  into.bytes = bytes;
  into.end = Math.min(end, at + 40 + length);
  into.missing = Math.max(0, at + 40 + length - end);
  into.offset = 0;
  into.more = false;
  let next = bytes[at + 6]!;
  let from = at + 40;
  for (let count = 0; count < EXTENSIONS_MAX; count++) {
    if (next === EXTENSION.FRAGMENT) {
      if (from + 8 > into.end) return false;
      const word = (bytes[from + 2]! << 8) | bytes[from + 3]!;
      into.offset = word & 0xfff8;
      into.more = (word & 1) !== 0;
      into.id = readUint32(bytes, from + 4);
      next = bytes[from]!;
      from += 8;
      if (into.offset > 0) break;
    } else if (
      next === EXTENSION.HOPS ||
      next === EXTENSION.ROUTING ||
      next === EXTENSION.DESTINATION ||
      next === EXTENSION.AUTHENTICATION
    ) {
      if (from + 8 > into.end) return false;
      const units = bytes[from + 1]!;
      const size = next === EXTENSION.AUTHENTICATION ? (units + 2) * 4 : (units + 1) * 8;
      next = bytes[from]!;
      from += size;
    } else break;
  }
  if (from > into.end) return false;
  into.protocol = next;
  into.at = from;
  return true;
}
