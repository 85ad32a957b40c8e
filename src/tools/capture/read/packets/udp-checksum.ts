/** Verifies the checksum of UDP datagrams (RFC 768; RFC 8200, section 8.1). */
import type { IpPacket } from './ip-packet.ts';
import { PROTOCOL } from './ip-packet.ts';

const FULL = 0xffff;

/**
 * True if a complete datagram's checksum is wrong. A checksum left to the network card does not count as wrong. The
 * field then has only the sum of addresses, protocol and length.
 * @param length the datagram's size in bytes, including the header
 */
export function hasWrongChecksum(packet: IpPacket, length: number): boolean {
  const { bytes, at, family, head, addressesAt } = packet;
  const written = (bytes[at + 6]! << 8) | bytes[at + 7]!;
  // The sender did not compute one.
  if (written === 0) return false;
  const addresses = sum(head, addressesAt, addressesAt + (family === 4 ? 8 : 32));
  const pseudo = folded(addresses + PROTOCOL.UDP + length);
  if (folded(pseudo + sum(bytes, at, at + length)) === FULL) return false;
  return written !== pseudo && written !== (~pseudo & FULL);
}

/** Adds up 16-bit words. If the last byte is odd, it is the upper half of one. */
function sum(bytes: Uint8Array, from: number, to: number): number {
  let total = 0;
  let at = from;
  for (; at + 1 < to; at += 2) total += (bytes[at]! << 8) | bytes[at + 1]!;
  return at < to ? total + (bytes[at]! << 8) : total;
}

function folded(total: number): number {
  while (total > FULL) total = (total & FULL) + Math.floor(total / 0x10000);
  return total;
}
