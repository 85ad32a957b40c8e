/** Lists the machine's interfaces and their addresses using rtnetlink(7). */
import { printAddress } from '../base/ip.ts';
import { listLinks } from './links.ts';
import { dumpNetlink } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** Message types in <linux/rtnetlink.h>. */
export const ADDRESSES = { NEW: 20, DELETE: 21, GET: 22 } as const;
/** `struct ifaddrmsg` (<linux/if_addr.h>). */
export const ADDRESS = { SIZE: 8, FAMILY: 0, PREFIX: 1, SCOPE: 3, INDEX: 4 } as const;
/** Address attributes. */
export const OF_ADDRESS = { INTERFACE: 1, LOCAL: 2, LIFETIMES: 6, FLAGS: 8 } as const;
const SCOPE_LINK = 253;

/** An address of an interface. */
export interface InterfaceAddress {
  /** The interface's number. */
  readonly index: number;
  readonly address: string;
  readonly prefix: number;
  /** True for IPv6 link-local addresses (`fe80::`). */
  readonly isLinkLocal: boolean;
}

/** @throws LibcMissing, SystemError */
export function listAddresses(): readonly InterfaceAddress[] {
  const found: InterfaceAddress[] = [];
  dumpNetlink(ADDRESSES.GET, ADDRESSES.NEW, ADDRESS.SIZE, (bytes, view, attributes) => {
    const family = view.getUint8(ADDRESS.FAMILY);
    const place = attributes.get(OF_ADDRESS.LOCAL) ?? attributes.get(OF_ADDRESS.INTERFACE);
    if (place === undefined || (family !== AF_INET && family !== AF_INET6)) return;
    found.push({
      index: view.getInt32(ADDRESS.INDEX, true),
      address: printAddress(bytes, place[0], family === AF_INET ? 4 : 16),
      prefix: view.getUint8(ADDRESS.PREFIX),
      isLinkLocal: family === AF_INET6 && view.getUint8(ADDRESS.SCOPE) === SCOPE_LINK,
    });
  });
  return found;
}

/**
 * Returns all interfaces in the network namespace with their addresses, including those that are down or without
 * carrier, which the runtime omits. Link-local IPv6 addresses include their zone: `fe80::1%eth0`.
 * @throws LibcMissing, SystemError
 */
export function interfaceAddresses(): ReadonlyMap<string, readonly string[]> {
  const links = listLinks();
  const addresses = listAddresses();
  return new Map(
    links.map(({ index: link, name }) => [
      name,
      addresses
        .filter(({ index }) => index === link)
        .map(({ address, isLinkLocal }) => (isLinkLocal ? `${address}%${name}` : address)),
    ]),
  );
}
