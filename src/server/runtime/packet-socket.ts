/** Packet sockets (packet(7)), which see the packets on an interface. */
import { Descriptor, scratch } from './descriptor.ts';
import { ERRNO, libc, SOCK, SOL_SOCKET, SystemError } from './libc.ts';
import { Memory } from './memory.ts';
import { dnsFilter } from './packet-filter.ts';
import { packetLoop, type SocketWatch } from './packet-loop.ts';
import { BATCH, ReceiveBatch, CONTROL_SLOT } from './receive-batch.ts';
import { NAME_SLOT } from './socket-address.ts';

const AF_PACKET = 17;
const SO_ATTACH_FILTER = 26;
const SO_RCVBUFFORCE = 33;
const SO_RCVBUF = 8;
const SO_TIMESTAMPNS = 35;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;
/** All protocols (ETH_P_ALL), in network byte order. */
const EVERY_PROTOCOL = 0x0300;

/** Field offsets in struct sockaddr_ll. */
const LINK = { PROTOCOL: 2, INDEX: 4, HARDWARE: 8, KIND: 10, SIZE: 20 };
/** Marks outgoing packets. Loopback shows every packet a second time as outgoing. */
const OUTGOING = 4;
const LOOPBACK = 772;
/** Offset of the timestamp in a control message, after its length, level and type. */
const TIME_AT = 16;
/** Maximum size of an IP packet. */
const PACKET_MAX = 65_535;
/** Kernel buffer size in bytes, for packets that arrive while this thread is busy. */
const BUFFER = 32 * 1024 * 1024;
/**
 * Maximum number of buffered packets. The kernel allocates twice the requested buffer, and at least half a kilobyte per
 * packet.
 */
const BUFFERED_MAX = (2 * BUFFER) / 512;
/** Maximum number of batches read before other work gets its turn. */
const BATCHES_MAX = 16;

/** Receives one packet: `bytes[start, end)` begins with its IP header. The next packets overwrite it. */
export type TakePacket = (
  bytes: Uint8Array,
  start: number,
  end: number,
  timeMs: number,
  /** Interface number. */
  port: number,
  /** True if the packet leaves through this interface. */
  isOutgoing: boolean,
) => void;

/** A socket that sees the DNS packets on one interface or on all. The owner must close it. */
export class PacketSocket extends Descriptor {
  readonly #batch = new ReceiveBatch(PACKET_MAX);
  #watch: SocketWatch | null = null;
  #dropped = 0;

  /**
   * @param device null = all interfaces in this thread's network namespace
   * @param opened true to include packets that open TCP connections, on any port
   * @throws SystemError, LibcMissing
   */
  constructor(device: string | null, ports: readonly number[], opened = false) {
    const index = device === null ? 0 : libc().interfaceIndex(device);
    if (device !== null && index === 0) throw new SystemError(`interface ${device}`, ERRNO.ENODEV);
    // With no protocol set, the socket receives nothing until the filter is in place.
    super(libc().socket(AF_PACKET, SOCK.DGRAM | SOCK.NONBLOCK | SOCK.CLOEXEC, 0), 'socket');
    try {
      this.#attach(dnsFilter(ports, opened));
      this.option(SO_TIMESTAMPNS, 1);
      if (!this.option(SO_RCVBUFFORCE, BUFFER)) this.option(SO_RCVBUF, BUFFER);
      this.#bind(index);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Passes every packet to `take` until closed. Keeps the process alive. */
  start(take: TakePacket): void {
    this.#watch = packetLoop().watch(this.fd, () => {
      for (let batches = 0; batches < BATCHES_MAX && this.isOpen; batches++) {
        const count = this.#batch.receive(this.fd);
        for (let i = 0; i < count && this.isOpen; i++) this.#give(i, take);
        if (count < BATCH) return;
      }
    });
  }

  /**
   * Passes packets buffered in the kernel to `take`, for use before closing. Reads no more than the buffer can hold,
   * however fast packets arrive. Timestamps cannot mark the end, because the first packets after opening are stamped
   * with the time at which they are read.
   */
  drain(take: TakePacket): void {
    for (let left = BUFFERED_MAX; this.isOpen && left > 0; left -= BATCH) {
      const count = this.#batch.receive(this.fd);
      for (let i = 0; i < count && this.isOpen; i++) this.#give(i, take);
      if (count < BATCH) return;
    }
  }

  /** Number of packets that passed the filter but were lost because they were not read in time. */
  get dropped(): number {
    if (!this.isOpen) return this.#dropped;
    const { words, address } = scratch();
    words[0] = 0;
    words[1] = 0;
    words[4] = 8;
    const failed = libc().getsockopt(this.fd, SOL_PACKET, PACKET_STATISTICS, address, address + 16);
    // Reading resets the kernel's counter.
    if (failed >= 0) this.#dropped += words[1]!;
    return this.#dropped;
  }

  override close(): void {
    if (!this.isOpen) return;
    this.#dropped = this.dropped;
    this.#watch?.close();
    super.close();
    this.#batch.free();
  }

  #give(i: number, take: TakePacket): void {
    const { names, controls, slab, slot } = this.#batch;
    const name = i * NAME_SLOT;
    const hardware = names[name + LINK.HARDWARE]! | (names[name + LINK.HARDWARE + 1]! << 8);
    const isOutgoing = names[name + LINK.KIND] === OUTGOING;
    if (hardware === LOOPBACK && isOutgoing) return;
    const index = name + LINK.INDEX;
    const low = names[index]! | (names[index + 1]! << 8);
    const port = low | (names[index + 2]! << 16) | (names[index + 3]! << 24);
    const start = i * slot;
    const end = start + this.#batch.length(i);
    take(slab, start, end, timeOf(controls, i * CONTROL_SLOT), port, isOutgoing);
  }

  #attach(program: Uint8Array): void {
    const memory = new Memory(16 + program.length);
    try {
      // struct sock_fprog: the number of instructions and their address.
      memory.words[0] = program.length / 8;
      memory.setPointer(2, memory.address + 16);
      memory.bytes.set(program, 16);
      const { address } = memory;
      const failed = libc().setsockopt(this.fd, SOL_SOCKET, SO_ATTACH_FILTER, address, 16);
      this.check('SO_ATTACH_FILTER', failed);
    } finally {
      memory.free();
    }
  }

  #bind(index: number): void {
    const { bytes, words, address } = scratch();
    bytes.fill(0, 0, LINK.SIZE);
    bytes[0] = AF_PACKET;
    bytes[LINK.PROTOCOL] = EVERY_PROTOCOL & 0xff;
    bytes[LINK.PROTOCOL + 1] = EVERY_PROTOCOL >> 8;
    words[LINK.INDEX / 4] = index;
    this.check('bind', libc().bind(this.fd, address, LINK.SIZE));
  }
}

/**
 * Reads the timestamp from a control message (seconds and nanoseconds, 64 bits each). The kernel always provides it;
 * otherwise the current time is used.
 */
function timeOf(controls: Uint8Array, at: number): number {
  const view = new DataView(controls.buffer, controls.byteOffset + at, CONTROL_SLOT);
  if (view.getUint32(8, true) !== SOL_SOCKET) return Date.now();
  const seconds = view.getUint32(TIME_AT, true) + view.getUint32(TIME_AT + 4, true) * 0x1_0000_0000;
  return seconds * 1000 + view.getUint32(TIME_AT + 8, true) / 1e6;
}
