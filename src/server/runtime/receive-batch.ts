import { copyBytes } from '../base/copy-bytes.ts';
import { ERRNO, libc, MSG_DONTWAIT } from './libc.ts';
import { Memory } from './memory.ts';
import { NAME_SLOT } from './socket-address.ts';

/** Datagrams per system call. */
export const BATCH = 64;
/** Size of struct mmsghdr on 64-bit Linux, in bytes, and its field offsets, in 32-bit words. */
export const HEAD = {
  SIZE: 64,
  WORDS: 16,
  NAME: 0,
  NAME_LENGTH: 2,
  PIECES: 4,
  PIECE_COUNT: 6,
  CONTROL: 8,
  CONTROL_LENGTH: 10,
  FLAGS: 12,
  LENGTH: 14,
} as const;
/** Size of struct iovec (address and length, eight bytes each) in 32-bit words. */
export const PIECE_WORDS = 4;
/** Space for one packet info of either family. */
export const CONTROL_SLOT = 64;

const MSG_TRUNC = 0x20;

/** Address offsets in a received packet info, from the start of the slot. */
const INFO = { LEVEL: 8, TYPE: 12, INTERFACE_4: 16, SOURCE_4: 20, ADDRESS_6: 16, INTERFACE_6: 32 };

export interface ReceiveBatchOptions {
  /** Number of datagrams; default: 64. */
  readonly count?: number;
  /** True (the default) to receive senders and packet infos. A connected socket has only one sender. */
  readonly senders?: boolean;
}

/**
 * Receives up to 64 datagrams from a socket with one system call. Datagram `i` starts at `i * slot` in `slab`; its
 * sender and packet info are in `names` and `controls`. Everything is valid until the next `receive`.
 */
export class ReceiveBatch {
  /**
   * Bytes from the start of one datagram to the next. Not a power of two, to spread the datagrams over more cache
   * lines.
   */
  readonly slot: number;
  readonly #count: number;
  readonly #senders: boolean;
  readonly #slab: Memory;
  readonly #names = new Memory(BATCH * NAME_SLOT);
  readonly #controls = new Memory(BATCH * CONTROL_SLOT);
  readonly #pieces = new Memory(BATCH * PIECE_WORDS * 4);
  readonly #heads = new Memory(BATCH * HEAD.SIZE);
  /** Number of headers that the kernel may have written since they were set up. */
  #used: number;

  /** @param size maximum size of a datagram that is received whole */
  constructor(size: number, { count = BATCH, senders = true }: ReceiveBatchOptions = {}) {
    this.slot = ((size + 63) & ~63) + 64;
    this.#count = count;
    this.#senders = senders;
    this.#used = count;
    this.#slab = new Memory(count * this.slot, false);
    for (let i = 0; i < count; i++) {
      this.#pieces.setPointer(i * PIECE_WORDS, this.#slab.address + i * this.slot);
      this.#pieces.words[i * PIECE_WORDS + 2] = size;
      const head = i * HEAD.WORDS;
      this.#heads.setPointer(head + HEAD.PIECES, this.#pieces.address + i * PIECE_WORDS * 4);
      this.#heads.words[head + HEAD.PIECE_COUNT] = 1;
      if (!senders) continue;
      this.#heads.setPointer(head + HEAD.NAME, this.nameAddress(i));
      this.#heads.setPointer(head + HEAD.CONTROL, this.controlAddress(i));
    }
  }

  get slab(): Uint8Array {
    return this.#slab.bytes;
  }

  /** Sockaddrs of the senders, one per NAME_SLOT bytes. */
  get names(): Uint8Array {
    return this.#names.bytes;
  }

  get controls(): Uint8Array {
    return this.#controls.bytes;
  }

  /**
   * Reads at most `most` datagrams.
   * @returns the number read, or a negative error number (`-EAGAIN` if there are none)
   */
  receive(fd: number, most: number = this.#count): number {
    if (this.#senders) this.#makeRoomForSenders();
    const limit = most < this.#count ? most : this.#count;
    const count = libc().recvmmsg(fd, this.#heads.address, limit, MSG_DONTWAIT, 0);
    if (count >= 0) {
      this.#used = count;
      return count;
    }
    // A failed call may have written the first header.
    this.#used = 1;
    const errno = libc().errno();
    return errno === ERRNO.EINTR ? -ERRNO.EAGAIN : -errno;
  }

  #makeRoomForSenders(): void {
    const { words } = this.#heads;
    for (let i = 0, head = 0; i < this.#used; i++, head += HEAD.WORDS) {
      words[head + HEAD.NAME_LENGTH] = NAME_SLOT;
      words[head + HEAD.CONTROL_LENGTH] = CONTROL_SLOT;
    }
  }

  length(i: number): number {
    return this.#heads.words[i * HEAD.WORDS + HEAD.LENGTH]!;
  }

  /** Returns true if the datagram was longer than its slot. */
  isCut(i: number): boolean {
    return (this.#heads.words[i * HEAD.WORDS + HEAD.FLAGS]! & MSG_TRUNC) !== 0;
  }

  nameLength(i: number): number {
    return this.#heads.words[i * HEAD.WORDS + HEAD.NAME_LENGTH]!;
  }

  nameAddress(i: number): number {
    return this.#names.address + i * NAME_SLOT;
  }

  controlAddress(i: number): number {
    return this.#controls.address + i * CONTROL_SLOT;
  }

  controlLength(i: number): number {
    return this.#heads.words[i * HEAD.WORDS + HEAD.CONTROL_LENGTH]!;
  }

  /** Copies the sender's sockaddr and the packet info of datagram `i`, as needed for a reply with `SendBatch.addTo`. */
  copyWayBack(i: number, name: Uint8Array, control: Uint8Array): void {
    copyBytes(this.#names.bytes, i * NAME_SLOT, name, 0, this.nameLength(i));
    copyBytes(this.#controls.bytes, i * CONTROL_SLOT, control, 0, this.controlLength(i));
  }

  /**
   * Returns the offset in `controls` of the address that datagram `i` was sent to, or -1 if the socket does not report
   * it.
   */
  localAt(i: number, family: 4 | 6): number {
    if (this.controlLength(i) === 0) return -1;
    return i * CONTROL_SLOT + (family === 4 ? INFO.SOURCE_4 : INFO.ADDRESS_6);
  }

  /**
   * Changes the packet info of datagram `i` so that the reply is sent from the queried address, but through the
   * interface selected by routing. Link-local addresses keep their interface, without which they are meaningless.
   */
  forReply(i: number, family: 4 | 6): void {
    if (this.controlLength(i) === 0) return;
    const { words, bytes } = this.#controls;
    const at = i * CONTROL_SLOT;
    if (family === 4) {
      words[(at + INFO.INTERFACE_4) >> 2] = 0;
    } else if (
      bytes[at + INFO.ADDRESS_6] !== 0xfe ||
      (bytes[at + INFO.ADDRESS_6 + 1]! & 0xc0) !== 0x80
    ) {
      words[(at + INFO.INTERFACE_6) >> 2] = 0;
    }
  }

  free(): void {
    for (const memory of [this.#slab, this.#names, this.#controls, this.#pieces, this.#heads]) {
      memory.free();
    }
  }
}
