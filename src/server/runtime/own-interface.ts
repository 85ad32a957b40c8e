/** Creates network interfaces for this program's own addresses, and manages those addresses (rtnetlink(7)). */
import { parseAddress } from '../base/ip.ts';
import { ADDRESS, ADDRESSES, listAddresses, OF_ADDRESS } from './interfaces.ts';
import { libc } from './libc.ts';
import { LINK, LINKS, listLinks, OF_LINK, UP, type Link } from './links.ts';
import { attribute, CHANGE, changeByNetlink } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** Makes IPv6 addresses usable at once, without duplicate address detection. */
const NO_DUPLICATE_DETECTION = 2;
const FOREVER = 0xffff_ffff;

/**
 * Returns the interface with this name, or null.
 * @throws LibcMissing, SystemError
 */
export function findLink(name: string): Link | null {
  return listLinks().find((link) => link.name === name) ?? null;
}

/**
 * Creates an interface and brings it up.
 * @param alias identifies the owner; shown by `ip link show`
 * @throws SystemError: `EOPNOTSUPP` if the kernel does not support this kind, `EPERM`, `EEXIST`
 */
export function addLink(name: string, kind: string, alias: string): void {
  const body = joined(
    new Uint8Array(LINK.SIZE),
    attribute(OF_LINK.NAME, text(name)),
    attribute(OF_LINK.INFO, attribute(OF_LINK.INFO_KIND, text(kind))),
  );
  const call = `make interface ${name} of type ${kind}`;
  changeByNetlink(LINKS.NEW, CHANGE.CREATE | CHANGE.EXCLUSIVE, body, call);
  const link = findLink(name);
  if (link !== null) raiseLink(link.index, alias);
}

/**
 * Brings an interface up.
 * @param alias a new alias; empty: unchanged
 * @throws SystemError
 */
export function raiseLink(index: number, alias = ''): void {
  const head = new Uint8Array(LINK.SIZE);
  const view = new DataView(head.buffer);
  view.setInt32(LINK.INDEX, index, true);
  view.setUint32(LINK.FLAGS, UP, true);
  view.setUint32(LINK.CHANGED, UP, true);
  const body = alias === '' ? head : joined(head, attribute(OF_LINK.ALIAS, text(alias)));
  changeByNetlink(LINKS.NEW, 0, body, 'put interface up');
}

/** @throws SystemError */
export function removeLink(index: number): void {
  const body = new Uint8Array(LINK.SIZE);
  new DataView(body.buffer).setInt32(LINK.INDEX, index, true);
  changeByNetlink(LINKS.DELETE, 0, body, 'remove interface');
}

/**
 * Returns an interface's addresses, except automatic IPv6 link-local ones (`fe80::`).
 * @throws SystemError
 */
export function addressesOn(index: number): readonly string[] {
  return listAddresses()
    .filter(({ index: link }) => link === index)
    .filter(({ isLinkLocal, prefix }) => !isLinkLocal || prefix === 128)
    .map(({ address }) => address);
}

/**
 * Adds an address with a full-length prefix to an interface, or renews the lifetime of an existing one.
 * @param seconds lifetime after which the kernel removes the address; null: permanent
 * @throws SystemError: `EPERM`; `EACCES` or `EOPNOTSUPP` without IPv6
 */
export function putAddress(index: number, address: string, seconds: number | null): void {
  const lifetimes = new Uint8Array(16);
  const view = new DataView(lifetimes.buffer);
  view.setUint32(0, seconds ?? FOREVER, true);
  view.setUint32(4, seconds ?? FOREVER, true);
  const flags = new Uint8Array(4);
  new DataView(flags.buffer).setUint32(0, NO_DUPLICATE_DETECTION, true);
  const body = joined(
    addressBody(index, address),
    attribute(OF_ADDRESS.LIFETIMES, lifetimes),
    attribute(OF_ADDRESS.FLAGS, flags),
  );
  const call = `put ${address} on the interface`;
  changeByNetlink(ADDRESSES.NEW, CHANGE.CREATE | CHANGE.REPLACE, body, call);
}

/** @throws SystemError: `EADDRNOTAVAIL` if the interface does not have the address */
export function takeAddress(index: number, address: string): void {
  const call = `take ${address} from the interface`;
  changeByNetlink(ADDRESSES.DELETE, 0, addressBody(index, address), call);
}

function addressBody(index: number, address: string): Uint8Array {
  const value = parseAddress(address);
  if (value === null) throw new Error(`not an IP address: ${address}`);
  const head = new Uint8Array(ADDRESS.SIZE);
  head[ADDRESS.FAMILY] = value.length === 4 ? AF_INET : AF_INET6;
  head[ADDRESS.PREFIX] = 8 * value.length;
  new DataView(head.buffer).setInt32(ADDRESS.INDEX, index, true);
  return joined(head, attribute(OF_ADDRESS.LOCAL, value), attribute(OF_ADDRESS.INTERFACE, value));
}

function text(value: string): Uint8Array {
  return Buffer.from(`${value}\0`);
}

function joined(...pieces: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(pieces);
}

/** Returns null if the C library can be called, which all of this requires, or the reason why not. */
export function noInterfaces(): string | null {
  try {
    libc();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
