/** Sends several datagrams with one sendmmsg(2). */
import { copyBytes } from '../base/copy-bytes.ts';
import { ERRNO, libc, MSG_DONTWAIT } from './libc.ts';
import { Memory } from './memory.ts';
import { BATCH, CONTROL_SLOT, HEAD, PIECE_WORDS, type ReceiveBatch } from './receive-batch.ts';
import { NAME_SLOT } from './socket-address.ts';

/**
 * Up to 64 datagrams sent from a socket with one system call. They are written consecutively into `slab`: call
 * `hasRoom`, write at `at`, then add the datagram with its length and destination. Call `flush` before switching
 * sockets.
 */
export class SendBatch {
  readonly #slab: Memory;
  readonly #names = new Memory(BATCH * NAME_SLOT);
  readonly #controls = new Memory(BATCH * CONTROL_SLOT);
  readonly #pieces = new Memory(BATCH * PIECE_WORDS * 4);
  readonly #heads = new Memory(BATCH * HEAD.SIZE);
  #at = 0;
  #count = 0;
  /** Number of datagrams that the last `flush` could not send. */
  failed = 0;
  /** Last error number in the last `flush`, or 0. */
  errno = 0;

  constructor(size: number) {
    this.#slab = new Memory(size, false);
    for (let i = 0; i < BATCH; i++) {
      const head = i * HEAD.WORDS;
      this.#heads.setPointer(head + HEAD.PIECES, this.#pieces.address + i * PIECE_WORDS * 4);
      this.#heads.words[head + HEAD.PIECE_COUNT] = 1;
    }
  }

  get slab(): Uint8Array {
    return this.#slab.bytes;
  }

  get at(): number {
    return this.#at;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns true if a datagram of up to `size` bytes can be added before a flush. */
  hasRoom(size: number): boolean {
    return this.#count < BATCH && this.#at + size <= this.#slab.bytes.length;
  }

  /** Adds the bytes at `at` as the reply to datagram `i` of `batch`, which must not change before the flush. */
  addReply(length: number, batch: ReceiveBatch, i: number): void {
    const head = this.#add(length);
    const { words } = this.#heads;
    this.#heads.setPointer(head + HEAD.NAME, batch.nameAddress(i));
    words[head + HEAD.NAME_LENGTH] = batch.nameLength(i);
    const control = batch.controlLength(i);
    if (control > 0) this.#heads.setPointer(head + HEAD.CONTROL, batch.controlAddress(i));
    words[head + HEAD.CONTROL_LENGTH] = control;
  }

  /** Adds the bytes at `at`, addressed by a sockaddr and a packet info (length 0: none), both of which are copied. */
  addTo(
    length: number,
    name: Uint8Array,
    nameLength: number,
    control: Uint8Array,
    controlLength: number,
  ): void {
    const i = this.#count;
    const head = this.#add(length);
    const { words } = this.#heads;
    copyBytes(name, 0, this.#names.bytes, i * NAME_SLOT, nameLength);
    this.#heads.setPointer(head + HEAD.NAME, this.#names.address + i * NAME_SLOT);
    words[head + HEAD.NAME_LENGTH] = nameLength;
    words[head + HEAD.CONTROL_LENGTH] = controlLength;
    if (controlLength > 0) {
      copyBytes(control, 0, this.#controls.bytes, i * CONTROL_SLOT, controlLength);
      this.#heads.setPointer(head + HEAD.CONTROL, this.#controls.address + i * CONTROL_SLOT);
    }
  }

  #add(length: number): number {
    const i = this.#count++;
    this.#pieces.setPointer(i * PIECE_WORDS, this.#slab.address + this.#at);
    this.#pieces.words[i * PIECE_WORDS + 2] = length;
    this.#at += length;
    return i * HEAD.WORDS;
  }

  /**
   * Sends all datagrams. One that cannot be sent to its client (no route, a firewall) is skipped. If the socket's
   * buffer is full, the rest is dropped: clients retry, and waiting would delay everyone else.
   * @returns the number of datagrams sent; `failed` counts the others
   */
  flush(fd: number): number {
    const count = this.#count;
    this.#count = 0;
    this.#at = 0;
    this.failed = 0;
    this.errno = 0;
    let at = 0;
    while (at < count) {
      const address = this.#heads.address + at * HEAD.SIZE;
      const sent = libc().sendmmsg(fd, address, count - at, MSG_DONTWAIT);
      if (sent > 0) {
        at += sent;
        continue;
      }
      const errno = sent === 0 ? ERRNO.EAGAIN : libc().errno();
      if (errno === ERRNO.EINTR) continue;
      this.errno = errno;
      if (errno === ERRNO.EAGAIN || errno === ERRNO.ENOBUFS || errno === ERRNO.ENOMEM) {
        this.failed += count - at;
        break;
      }
      this.failed++;
      at++;
    }
    return count - this.failed;
  }

  free(): void {
    for (const memory of [this.#slab, this.#names, this.#controls, this.#pieces, this.#heads]) {
      memory.free();
    }
  }
}
