/**
 * Copies of messages, many in one piece of memory: one piece for each would cost more than what it
 * holds.
 */

const SLAB = 64 * 1024;

/** Copies bytes into memory that is never written again. It goes when the last copy in it does. */
export class CopiedBytes {
  /** Where the last copy stands. */
  slab: Uint8Array = new Uint8Array(SLAB);
  #present = this.slab;
  #at = 0;
  readonly #slabs = new WeakSet([this.slab]);

  /** Copies `bytes[start, end)`. @returns where the copy begins in `slab` */
  add(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (length > SLAB / 16) {
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

  /** Whether a copy of this one stands there. */
  has(slab: Uint8Array): boolean {
    return this.#slabs.has(slab);
  }

  /**
   * Moves the bytes of an exchange that outlives the others here: where they are, all their
   * neighbours would stay with them.
   */
  keep(exchange: { moveTo?(copies: CopiedBytes): void }): void {
    exchange.moveTo?.(this);
  }
}
