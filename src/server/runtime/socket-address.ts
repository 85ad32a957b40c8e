/** Reads and writes sockaddr_in and sockaddr_in6 in memory. */
import { parseAddress } from '../base/ip.ts';
import { ERRNO, libc, SystemError } from './libc.ts';
import type { Memory } from './memory.ts';

/** The IPv4 address family. */
export const AF_INET = 2;
/** The IPv6 address family. */
export const AF_INET6 = 10;

/** Protocol numbers (IANA). */
export const PROTOCOL = { tcp: 6, udp: 17 } as const;

/** Size of a slot that holds a sockaddr_in or sockaddr_in6, in bytes. */
export const NAME_SLOT = 32;
/** Sizes of sockaddr_in and sockaddr_in6, in bytes. */
export const NAME_SIZE = { 4: 16, 6: 28 } as const;
/** Offset of the address in a sockaddr. */
export const ADDRESS_AT = { 4: 4, 6: 8 } as const;

/**
 * Writes the sockaddr for an address (IPv6 with `%zone` if link-local) and port at byte `at`.
 * @returns its length
 */
export function writeSocketAddress(
  memory: Memory,
  at: number,
  address: string,
  port: number,
): number {
  const { bytes } = memory;
  const percent = address.indexOf('%');
  const plain = percent < 0 ? address : address.slice(0, percent);
  const binary = parseAddress(plain);
  if (binary === null) throw new Error(`not an IP address: ${address}`);
  const family = binary.length === 4 ? 4 : 6;
  bytes.fill(0, at, at + NAME_SLOT);
  bytes[at] = family === 4 ? AF_INET : AF_INET6;
  bytes[at + 2] = port >> 8;
  bytes[at + 3] = port & 0xff;
  bytes.set(binary, at + ADDRESS_AT[family]);
  if (percent >= 0) {
    const zone = address.slice(percent + 1);
    const scope = /^\d+$/.test(zone) ? Number(zone) : libc().interfaceIndex(zone);
    if (scope === 0) throw new SystemError(`if_nametoindex ${zone}`, ERRNO.ENODEV);
    // sin6_scope_id is in host byte order, which is little-endian here.
    for (let i = 0; i < 4; i++) bytes[at + 24 + i] = (scope >>> (8 * i)) & 0xff;
  }
  return NAME_SIZE[family];
}

export function readPort(bytes: Uint8Array, at: number): number {
  return (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
