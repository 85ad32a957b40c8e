/** Lists the machine's interfaces and their addresses using rtnetlink(7). */
import { printAddress } from '../base/ip.ts';
import { listLinks } from './links.ts';
import { dumpNetlink } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** Message types in <linux/rtnetlink.h>, and the offsets of their fields in bytes. */
const KIND = { NEW_ADDRESS: 20, GET_ADDRESS: 22 };
const ADDRESS = { SIZE: 8, FAMILY: 0, SCOPE: 3, INDEX: 4, OF_INTERFACE: 1, LOCAL: 2 };
const SCOPE_LINK = 253;

/**
 * Returns all interfaces in the network namespace with their addresses, including those that are down or without
 * carrier, which the runtime omits. Link-local IPv6 addresses include their zone: `fe80::1%eth0`.
 * @throws LibcMissing, SystemError
 */
export function interfaceAddresses(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<number, string>();
  const found = new Map<string, string[]>();
  for (const { index, name } of listLinks()) {
    names.set(index, name);
    found.set(name, []);
  }
  dumpNetlink(KIND.GET_ADDRESS, KIND.NEW_ADDRESS, ADDRESS.SIZE, (bytes, view, attributes) => {
    const name = names.get(view.getInt32(ADDRESS.INDEX, true));
    const place = attributes.get(ADDRESS.LOCAL) ?? attributes.get(ADDRESS.OF_INTERFACE);
    const family = view.getUint8(ADDRESS.FAMILY);
    if (name === undefined || place === undefined) return;
    if (family !== AF_INET && family !== AF_INET6) return;
    const text = printAddress(bytes, place[0], family === AF_INET ? 4 : 16);
    const zoned = family === AF_INET6 && view.getUint8(ADDRESS.SCOPE) === SCOPE_LINK;
    found.get(name)!.push(zoned ? `${text}%${name}` : text);
  });
  return found;
}
