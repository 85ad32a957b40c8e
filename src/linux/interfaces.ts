/** The machine's interfaces and their addresses, by rtnetlink(7). */
import { printAddress } from '../base/ip.ts';
import { libc, SystemError } from './libc.ts';
import { Memory } from './memory.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const NETLINK_ROUTE = 0;

/** Messages of <linux/netlink.h> and <linux/rtnetlink.h>, and where their parts are, in bytes. */
const HEADER = { SIZE: 16, TYPE: 4, FLAGS: 6, SEQUENCE: 8 };
const KIND = { ERROR: 2, DONE: 3, NEW_LINK: 16, GET_LINK: 18, NEW_ADDRESS: 20, GET_ADDRESS: 22 };
const REQUEST_ALL = 0x301;
const LINK = { SIZE: 16, INDEX: 4, NAME: 3 };
const ADDRESS = { SIZE: 8, FAMILY: 0, SCOPE: 3, INDEX: 4, OF_INTERFACE: 1, LOCAL: 2 };
const SCOPE_LINK = 253;

/** Bytes of one answer of the kernel: it never sends more at a time. */
const BUFFER = 32 * 1024;

/**
 * All interfaces of the network namespace with their addresses, those that are down or have no carrier included, which the
 * runtime leaves out. Link-local IPv6 addresses have their zone: `fe80::1%eth0`.
 * @throws LibcMissing, SystemError
 */
export function interfaceAddresses(): ReadonlyMap<string, readonly string[]> {
  const names = new Map<number, string>();
  const found = new Map<string, string[]>();
  dump(KIND.GET_LINK, KIND.NEW_LINK, LINK.SIZE, (bytes, view, attributes) => {
    const name = attributes.get(LINK.NAME);
    if (name === undefined) return;
    // The text ends with a zero byte.
    const text = Buffer.from(bytes.subarray(name[0], name[1] - 1)).toString();
    names.set(view.getInt32(LINK.INDEX, true), text);
    found.set(text, []);
  });
  dump(KIND.GET_ADDRESS, KIND.NEW_ADDRESS, ADDRESS.SIZE, (bytes, view, attributes) => {
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

/** By type: where an attribute's value begins and ends. */
type Attributes = ReadonlyMap<number, readonly [number, number]>;

/**
 * Asks the kernel for all things of one kind.
 * @param take gets each: the bytes, a view of what comes before the attributes (`size` bytes), and those
 */
function dump(
  request: number,
  wanted: number,
  size: number,
  take: (bytes: Uint8Array, view: DataView, attributes: Attributes) => void,
): void {
  const fd = check('socket', libc().socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const memory = new Memory(BUFFER);
  try {
    const { bytes } = memory;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    view.setUint32(0, HEADER.SIZE + size, true);
    view.setUint16(HEADER.TYPE, request, true);
    view.setUint16(HEADER.FLAGS, REQUEST_ALL, true);
    check('send', libc().send(fd, memory.address, HEADER.SIZE + size, 0));
    for (;;) {
      const length = check('recv', libc().recv(fd, memory.address, BUFFER, 0));
      if (length === 0) return;
      for (let at = 0; at + HEADER.SIZE <= length; at += align(view.getUint32(at, true))) {
        const type = view.getUint16(at + HEADER.TYPE, true);
        if (type === KIND.DONE || type === KIND.ERROR) return;
        if (type !== wanted) continue;
        const end = at + view.getUint32(at, true);
        const body = new DataView(bytes.buffer, bytes.byteOffset + at + HEADER.SIZE, size);
        take(bytes, body, attributesOf(view, at + HEADER.SIZE + size, end));
      }
    }
  } finally {
    libc().close(fd);
    memory.free();
  }
}

function attributesOf(view: DataView, start: number, end: number): Attributes {
  const found = new Map<number, readonly [number, number]>();
  for (let at = start; at + 4 <= end;) {
    const length = view.getUint16(at, true);
    if (length < 4) break;
    found.set(view.getUint16(at + 2, true), [at + 4, at + length]);
    at += align(length);
  }
  return found;
}

/** Messages and attributes begin at multiples of four bytes. */
function align(length: number): number {
  return (length + 3) & ~3;
}

function check(call: string, result: number): number {
  if (result < 0) throw new SystemError(call, libc().errno());
  return result;
}
