/** Memory for messages, allocated in large blocks and handed out in parts. */
import { copyBytes } from '../base/copy-bytes.ts';

/**
 * Memory that is allocated from front to back and never reused. A separate buffer per message would cost more than
 * everything else about storing it. A slab is freed once no part of it is referenced.
 */
class Slab {
  /** The buffer that contains the part returned by the last `take` or `put`. */
  bytes: Uint8Array;
  readonly #size: number;
  readonly #sharedMax: number;
  #shared: Uint8Array;
  #used = 0;

  /** @param sharedMax longer parts get a separate buffer */
  constructor(size: number, sharedMax: number = size) {
    this.#size = size;
    this.#sharedMax = sharedMax;
    this.#shared = new Uint8Array(size);
    this.bytes = this.#shared;
  }

  /**
   * Allocates `size` bytes.
   * @returns their start in `bytes`
   */
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

  /**
   * Stores a copy of `from[at, end)`.
   * @returns its start in `bytes`
   */
  put(from: Uint8Array, at: number, end: number): number {
    const begin = this.take(end - at);
    copyBytes(from, at, this.bytes, begin, end - at);
    return begin;
  }
}

/** This thread's slab for copied replies. For long-term storage, use `reply.own()`. */
export const replySlab: Slab = new Slab(65_536);

/**
 * This thread's slab for stored queries, which are usually needed for seconds. Most are little longer than a name and a
 * few options. A longer one gets its own buffer. Otherwise, a short query that waits would keep the memory of long,
 * answered ones alive.
 */
export const querySlab: Slab = new Slab(16_384, 512);
