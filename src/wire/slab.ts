/** Memory for messages, handed out in parts. */
import { copyBytes } from '../base/copy-bytes.ts';

/**
 * Memory that is handed out from front to back and never used again: memory of its own for each message would cost more than all
 * the rest of keeping it. A slab lives as long as anybody has a part of it.
 */
class Slab {
  /** The memory that was taken last. */
  bytes: Uint8Array;
  readonly #size: number;
  readonly #sharedMax: number;
  #shared: Uint8Array;
  #used = 0;

  /** @param sharedMax what is longer has memory of its own */
  constructor(size: number, sharedMax: number = size) {
    this.#size = size;
    this.#sharedMax = sharedMax;
    this.#shared = new Uint8Array(size);
    this.bytes = this.#shared;
  }

  /** Hands out `size` bytes. @returns where they begin in `bytes` */
  take(size: number): number {
    if (size > this.#sharedMax) {
      this.bytes = new Uint8Array(size);
      return 0;
    }
    if (this.#used + size > this.#size) {
      this.#shared = new Uint8Array(this.#size);
      this.#used = 0;
    }
    this.bytes = this.#shared;
    const begin = this.#used;
    this.#used += size;
    return begin;
  }

  /** Stores a copy of `from[at, end)`. @returns where it begins in `bytes` */
  put(from: Uint8Array, at: number, end: number): number {
    const begin = this.take(end - at);
    copyBytes(from, at, this.bytes, begin, end - at);
    return begin;
  }
}

/** This thread's slab for replies that are copied rather than built. Who stores a reply for long takes `reply.own()`. */
export const replySlab: Slab = new Slab(65_536);

/**
 * This thread's slab for queries that are kept, which is for seconds. Few are longer than a name and some options: they have
 * memory of their own, so that a short query that waits never keeps long ones that are answered.
 */
export const querySlab: Slab = new Slab(16_384, 512);
