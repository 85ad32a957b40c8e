/**
 * Copies messages into shared blocks of memory, because a block for each message would take up more space than the
 * message.
 */

/** The size of a block in bytes. Small, because a live view has four for each of up to a thousand servers. */
const SLAB = 16 * 1024;
/** Larger messages get a block of their own, in bytes. */
const SHARED_MAX = 2 * 1024;

/** Copies bytes into memory that is never overwritten. A block is freed together with the last copy in it. */
export class CopiedBytes {
  /** The block that contains the latest copy. */
  slab: Uint8Array = new Uint8Array(SLAB);
  #present = this.slab;
  #at = 0;
  readonly #slabs = new WeakSet([this.slab]);

  /**
   * Copies `bytes[start, end)`.
   * @returns the offset in `slab`
   */
  add(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (length > SHARED_MAX) {
      this.slab = bytes.slice(start, end);
      this.#slabs.add(this.slab);
      return 0;
    }
    if (this.#at + length > SLAB) {
      this.#present = new Uint8Array(SLAB);
      this.#slabs.add(this.#present);
      this.#at = 0;
    }
    const at = this.#at;
    const slab = (this.slab = this.#present);
    for (let i = 0; i < length; i++) slab[at + i] = bytes[start + i]!;
    this.#at = at + length;
    return at;
  }

  /** True if the block still contains copies from this object. */
  has(slab: Uint8Array): boolean {
    return this.#slabs.has(slab);
  }

  /** Copies the bytes of a long-lived exchange here, so that they do not pin a whole block. */
  keep(exchange: { moveTo?(copies: CopiedBytes): void }): void {
    exchange.moveTo?.(this);
  }
}
