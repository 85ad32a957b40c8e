/** Copies of messages, many in one piece of memory: one piece for each would cost more than what it holds. */

const SLAB = 64 * 1024;

/** Copies bytes into memory that is never written again. It goes when the last copy in it does. */
export class CopiedBytes {
  #slab = new Uint8Array(SLAB);
  #at = 0;

  copy(bytes: Uint8Array, start: number, end: number): Uint8Array {
    const length = end - start;
    if (length > SLAB / 16) return bytes.slice(start, end);
    if (this.#at + length > SLAB) {
      this.#slab = new Uint8Array(SLAB);
      this.#at = 0;
    }
    const at = this.#at;
    const slab = this.#slab;
    for (let i = 0; i < length; i++) slab[at + i] = bytes[start + i]!;
    this.#at = at + length;
    return slab.subarray(at, at + length);
  }
}
