/** UDP sockets implemented with system calls, for options that the runtime does not offer. */
import { printAddress, printHostPort } from '../base/ip.ts';
import { Descriptor, scratch } from './descriptor.ts';
import { forgetDescriptor, forgetMemory, takeOrphan, takeOrphans } from './held-by-thread.ts';
import { libc, SOCK, SOL_SOCKET } from './libc.ts';
import { ADDRESS_AT, AF_INET, AF_INET6, readPort, writeSocketAddress } from './socket-address.ts';

const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const SO_BINDTODEVICE = 25;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SO_MEMINFO = 55;
/** SO_MEMINFO (<linux/sock_diag.h>): its size in words, and the word that counts lost datagrams. */
const MEMINFO = { WORDS: 9, DROPS: 8 };
/** The ioctl(2) call number, and its request for a struct timespec of two 64-bit words. */
const IOCTL = process.arch === 'arm64' ? 29 : 16;
const SIOCGSTAMPNS = 0x8907;
const IPPROTO_IP = 0;
const IP_PKTINFO = 8;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
const IPV6_RECVPKTINFO = 49;

export interface UdpSocketOptions {
  readonly family: 4 | 6;
  /** True if other sockets of this user may bind the same port; the kernel then distributes the datagrams. */
  readonly reusePort?: boolean;
  /** True to receive the destination address with each datagram. */
  readonly packetInfo?: boolean;
  /** Size of the receive and send buffers in bytes; the system may grant less. 0: the system's default. */
  readonly buffer?: number;
  /** Name of the only interface to use. */
  readonly device?: string;
}

/** A non-blocking UDP socket. The owner must close it. */
export class UdpSocket extends Descriptor {
  readonly family: 4 | 6;

  /**
   * @param left an open, bound descriptor to continue with
   * @throws SystemError
   */
  constructor(options: UdpSocketOptions, left: number | null = null) {
    const domain = options.family === 4 ? AF_INET : AF_INET6;
    const type = SOCK.DGRAM | SOCK.NONBLOCK | SOCK.CLOEXEC;
    super(left ?? libc().socket(domain, type, 0), 'socket', left !== null);
    this.family = options.family;
    if (left !== null) return;
    try {
      this.#setUp(options);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** @throws SystemError */
  bind(address: string, port: number): void {
    const length = writeSocketAddress(scratch(), 0, address, port);
    this.check('bind', libc().bind(this.fd, scratch().address, length));
  }

  /**
   * Connects the socket. From then on, it receives only datagrams from that address and reports ICMP errors.
   * @throws SystemError
   */
  connect(address: string, port: number): void {
    const length = writeSocketAddress(scratch(), 0, address, port);
    this.check('connect', libc().connect(this.fd, scratch().address, length));
  }

  /**
   * Returns the local port.
   * @throws SystemError
   */
  get port(): number {
    return readPort(this.#localName(), 0);
  }

  /**
   * Returns the local address and port: `10.0.0.1:40000`, `[2001:db8::1]:40000`.
   * @throws SystemError
   */
  get local(): string {
    const name = this.#localName();
    const text = printAddress(name, ADDRESS_AT[this.family], this.family === 4 ? 4 : 16);
    return printHostPort(text, readPort(name, 0));
  }

  #localName(): Uint8Array {
    const memory = scratch();
    memory.words[LENGTH_AT / 4] = SCRATCH_NAME;
    const { address } = memory;
    this.check('getsockname', libc().getsockname(this.fd, address, address + LENGTH_AT));
    return memory.bytes;
  }

  /** Datagrams lost for lack of buffer space since the socket was created; 32 bits. */
  get lost(): number {
    const { words, address } = scratch();
    words[MEMINFO.DROPS] = 0;
    words[LENGTH_AT / 4] = 4 * MEMINFO.WORDS;
    // Kernels before 4.12 do not report it, so none are counted.
    libc().getsockopt(this.fd, SOL_SOCKET, SO_MEMINFO, address, address + LENGTH_AT);
    return words[MEMINFO.DROPS]!;
  }

  /**
   * Returns when the last read datagram arrived, in milliseconds since 1970, or 0 if the kernel does not report it. The
   * queue is first in, first out, so datagrams read earlier arrived earlier.
   */
  lastCameAt(): number {
    const { words, address } = scratch();
    if (libc().syscall(IOCTL, this.fd, SIOCGSTAMPNS, address) < 0) return 0;
    const seconds = words[0]! + words[1]! * 2 ** 32;
    return seconds * 1000 + words[2]! / 1e6;
  }

  #setUp({ family, reusePort, packetInfo, buffer, device }: UdpSocketOptions): void {
    if (family === 6) this.#set('IPV6_V6ONLY', IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (reusePort === true) this.#set('SO_REUSEPORT', SOL_SOCKET, SO_REUSEPORT, 1);
    if (packetInfo === true && family === 4) this.#set('IP_PKTINFO', IPPROTO_IP, IP_PKTINFO, 1);
    if (packetInfo === true && family === 6) {
      this.#set('IPV6_RECVPKTINFO', IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    }
    if (buffer !== undefined && buffer > 0) {
      // With CAP_NET_ADMIN, the system's limit does not apply. Without it, get as much as the limit allows.
      if (!this.option(SO_RCVBUFFORCE, buffer)) this.option(SO_RCVBUF, buffer);
      if (!this.option(SO_SNDBUFFORCE, buffer)) this.option(SO_SNDBUF, buffer);
    }
    if (device !== undefined && device !== '') {
      const name = new TextEncoder().encode(device);
      scratch().bytes.set(name, 0);
      const { address } = scratch();
      const failed = libc().setsockopt(this.fd, SOL_SOCKET, SO_BINDTODEVICE, address, name.length);
      this.check('setsockopt SO_BINDTODEVICE', failed);
    }
  }

  #set(name: string, level: number, option: number, value: number): void {
    this.check(`setsockopt ${name}`, this.option(option, value, level) ? 0 : -1);
  }
}

/**
 * Takes over the socket that the previous thread had bound to this address and port, if any. Its queue still holds the
 * datagrams received in the meantime.
 */
export function inheritSocket(
  options: UdpSocketOptions,
  address: string,
  port: number,
): UdpSocket | null {
  const left = takeOrphan((fd) => isBoundTo(fd, address, port));
  return left === null ? null : new UdpSocket(options, left);
}

/** Releases unused sockets of previous threads. */
export function giveBackOrphans(): void {
  const { descriptors, memory } = takeOrphans();
  for (const fd of descriptors) {
    forgetDescriptor(fd);
    libc().close(fd);
  }
  for (const address of memory) {
    forgetMemory(address);
    libc().free(address);
  }
}

function isBoundTo(fd: number, address: string, port: number): boolean {
  const memory = scratch();
  const { bytes } = memory;
  const length = writeSocketAddress(memory, 0, address, port);
  const wanted = bytes.slice(0, length);
  memory.words[LENGTH_AT / 4] = SCRATCH_NAME;
  if (libc().getsockname(fd, memory.address, memory.address + LENGTH_AT) < 0) return false;
  return (
    memory.words[LENGTH_AT / 4] === length && wanted.every((byte, index) => byte === bytes[index])
  );
}

const SCRATCH_NAME = 64;
const LENGTH_AT = 128;
