import { copyBytes } from '../base/copy-bytes.ts';

const SLAB_SIZE = 65536;

/**
 * Memory for finished messages: handed out from front to back, never written again. A slab lives as long as any reply
 * in it, so who stores a reply for long takes `reply.own()`.
 */
class Slab {
  bytes: Uint8Array<ArrayBuffer> = new Uint8Array(SLAB_SIZE);
  #used = 0;

  /** Stores a copy of `from[at, end)`, at most 64 KiB. @returns where it begins in `bytes` */
  put(from: Uint8Array, at: number, end: number): number {
    const length = end - at;
    if (this.#used + length > this.bytes.length) {
      this.bytes = new Uint8Array(SLAB_SIZE);
      this.#used = 0;
    }
    const begin = this.#used;
    this.#used += length;
    copyBytes(from, at, this.bytes, begin, length);
    return begin;
  }
}

/** This thread's slab for replies that are copied rather than built. */
export const replySlab: Slab = new Slab();
