/** Uses netlink(7) to list, read and change kernel objects, and to detect changes to firewall rules. */
import { Descriptor } from './descriptor.ts';
import { ERRNO, libc, SOCK, SOL_SOCKET, SystemError } from './libc.ts';
import { Memory } from './memory.ts';

const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
/** Netlink families: sockets of the network namespace (sock_diag(7)), and netfilter. */
export const NETLINK = { SOCK_DIAG: 4, NETFILTER: 12 } as const;
const SO_RCVTIMEO = 20;

/** Message header in <linux/netlink.h>: its size and field offsets, in bytes. */
const HEADER = { SIZE: 16, TYPE: 4, FLAGS: 6, SEQUENCE: 8 };
const MESSAGE = { ERROR: 2, DONE: 3 };
const REQUEST = 1;
const ACKNOWLEDGE = 4;
const ALL = 0x300;

/** Buffer size for the kernel's answers, which are never longer. */
const BUFFER = 32 * 1024;
/** Buffer size for an answer about one object. */
const OBJECT_BUFFER = 4096;
/** Masks an attribute's type, without the flags NLA_F_NESTED and NLA_F_NET_BYTEORDER. */
const ATTRIBUTE_TYPE = 0x3fff;

/** Flags for changes: whether the object may already exist (<linux/netlink.h>). */
export const CHANGE = { REPLACE: 0x100, EXCLUSIVE: 0x200, CREATE: 0x400 } as const;

/** Start and end of each attribute's value, by type. */
export type Attributes = ReadonlyMap<number, readonly [number, number]>;

/**
 * Lists all objects of one kind.
 * @param size bytes of an object before its attributes
 * @param take receives for each object the bytes, a view of the part before its attributes, and the attributes
 * @throws LibcMissing, SystemError
 */
export function dumpNetlink(
  request: number,
  wanted: number,
  size: number,
  take: (bytes: Uint8Array, view: DataView, attributes: Attributes) => void,
): void {
  withSocket((fd, memory) => {
    const { bytes } = memory;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    send(fd, memory, request, REQUEST | ALL, new Uint8Array(size));
    for (;;) {
      const length = receive(fd, memory);
      if (length === 0) return;
      for (let at = 0; at + HEADER.SIZE <= length; at += align(view.getUint32(at, true))) {
        const type = view.getUint16(at + HEADER.TYPE, true);
        if (type === MESSAGE.DONE || type === MESSAGE.ERROR) return;
        if (type !== wanted) continue;
        const end = at + view.getUint32(at, true);
        const body = new DataView(bytes.buffer, bytes.byteOffset + at + HEADER.SIZE, size);
        take(bytes, body, attributesIn(view, at + HEADER.SIZE + size, end));
      }
    }
  });
}

/**
 * Changes one object and waits for the kernel's acknowledgement.
 * @param body the message without its header: the object, then its attributes (`attribute`)
 * @throws LibcMissing, SystemError with the kernel's reason (`EPERM`, `EEXIST`, `EOPNOTSUPP` …)
 */
export function changeByNetlink(
  request: number,
  flags: number,
  body: Uint8Array,
  call: string,
): void {
  withSocket((fd, memory) => {
    send(fd, memory, request, REQUEST | ACKNOWLEDGE | flags, body);
    const length = receive(fd, memory);
    const view = new DataView(memory.bytes.buffer, memory.bytes.byteOffset, length);
    if (view.getUint16(HEADER.TYPE, true) !== MESSAGE.ERROR) return;
    const errno = -view.getInt32(HEADER.SIZE, true);
    if (errno !== 0) throw new SystemError(call, errno);
  });
}

/**
 * A socket for requesting objects one at a time. It stays in the network namespace in which it was opened. The owner
 * must close it.
 */
export class NetlinkSocket extends Descriptor {
  readonly #memory: Memory;
  readonly #view: DataView;
  #sequence = 0;

  /** @throws LibcMissing, SystemError */
  constructor(family: number) {
    super(libc().socket(AF_NETLINK, SOCK.RAW | SOCK.CLOEXEC, family), 'socket');
    this.#memory = new Memory(OBJECT_BUFFER);
    const { bytes, words, address } = this.#memory;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    // Time out after 1 s, so that a kernel that does not answer cannot stop this thread.
    words[0] = 1;
    libc().setsockopt(this.fd, SOL_SOCKET, SO_RCVTIMEO, address, 16);
  }

  /**
   * Requests one object.
   * @param body the message without its header
   * @param size bytes of the object before its attributes
   * @returns a view of the answer with the object's offset and attributes, valid until the next request, or the
   * kernel's error number
   * @throws SystemError if nothing could be sent or received
   */
  ask(request: number, body: Uint8Array, size: number): NetlinkObject | number {
    const sequence = (this.#sequence = (this.#sequence + 1) & 0x7fff_ffff);
    send(this.fd, this.#memory, request, REQUEST, body, sequence);
    for (;;) {
      const length = receive(this.fd, this.#memory, OBJECT_BUFFER);
      if (length < HEADER.SIZE) continue;
      // A late answer to a request that timed out.
      if (this.#view.getUint32(HEADER.SEQUENCE, true) !== sequence) continue;
      if (this.#view.getUint16(HEADER.TYPE, true) === MESSAGE.ERROR)
        return -this.#view.getInt32(HEADER.SIZE, true);
      const end = Math.min(length, this.#view.getUint32(0, true));
      const at = HEADER.SIZE;
      return { view: this.#view, at, attributes: attributesIn(this.#view, at + size, end) };
    }
  }

  override close(): void {
    super.close();
    this.#memory.free();
  }
}

/** An object described by the kernel, starting at byte `at` of the view. */
export interface NetlinkObject {
  readonly view: DataView;
  readonly at: number;
  readonly attributes: Attributes;
}

/** Messages of <linux/netfilter/nf_tables.h>, subsystem 10. The header is followed by four bytes, then attributes. */
const RULES = { ASK: (10 << 8) | 16, TOLD: (10 << 8) | 15, SIZE: 4, GENERATION: 1 };

/**
 * Returns a number that changes whenever nftables rules change (including those of iptables-nft), or null if the kernel
 * has no nftables.
 */
export function ruleGeneration(): number | null {
  try {
    let generation: number | null = null;
    const ask = (fd: number, memory: Memory): void => {
      send(fd, memory, RULES.ASK, REQUEST, new Uint8Array(RULES.SIZE));
      const length = receive(fd, memory);
      const view = new DataView(memory.bytes.buffer, memory.bytes.byteOffset, length);
      if (view.getUint16(HEADER.TYPE, true) !== RULES.TOLD) return;
      const place = attributesIn(view, HEADER.SIZE + RULES.SIZE, length).get(RULES.GENERATION);
      if (place !== undefined) generation = view.getUint32(place[0]);
    };
    withSocket(ask, NETLINK.NETFILTER);
    return generation;
  } catch {
    return null;
  }
}

/** Encodes one attribute: length, type, value, and padding to a multiple of four bytes. */
export function attribute(type: number, value: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(align(4 + value.length));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 4 + value.length, true);
  view.setUint16(2, type, true);
  bytes.set(value, 4);
  return bytes;
}

export function attributesIn(view: DataView, start: number, end: number): Attributes {
  const found = new Map<number, readonly [number, number]>();
  for (let at = start; at + 4 <= end;) {
    const length = view.getUint16(at, true);
    if (length < 4) break;
    const type = view.getUint16(at + 2, true) & ATTRIBUTE_TYPE;
    found.set(type, [at + 4, Math.min(at + length, end)]);
    at += align(length);
  }
  return found;
}

function withSocket(use: (fd: number, memory: Memory) => void, protocol = NETLINK_ROUTE): void {
  const fd = libc().socket(AF_NETLINK, SOCK.RAW | SOCK.CLOEXEC, protocol);
  if (fd < 0) throw new SystemError('socket', libc().errno());
  const memory = new Memory(BUFFER, false);
  try {
    use(fd, memory);
  } finally {
    libc().close(fd);
    memory.free();
  }
}

function send(
  fd: number,
  memory: Memory,
  type: number,
  flags: number,
  body: Uint8Array,
  sequence = 0,
): void {
  const { bytes } = memory;
  bytes.fill(0, 0, HEADER.SIZE);
  bytes.set(body, HEADER.SIZE);
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER.SIZE);
  const size = HEADER.SIZE + body.length;
  view.setUint32(0, size, true);
  view.setUint16(HEADER.TYPE, type, true);
  view.setUint16(HEADER.FLAGS, flags, true);
  view.setUint32(HEADER.SEQUENCE, sequence, true);
  if (libc().send(fd, memory.address, size, 0) < 0) throw new SystemError('send', libc().errno());
}

function receive(fd: number, memory: Memory, size = BUFFER): number {
  for (;;) {
    const length = libc().recv(fd, memory.address, size, 0);
    if (length >= 0) return length;
    const errno = libc().errno();
    if (errno !== ERRNO.EINTR) throw new SystemError('recv', errno);
  }
}

/** Messages and attributes are aligned to four bytes. */
function align(length: number): number {
  return (length + 3) & ~3;
}
