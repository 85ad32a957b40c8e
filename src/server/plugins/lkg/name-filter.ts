/** Distinguishes repeated names from those seen only once, in constant memory. */
import { hashBytes } from '../../base/hash.ts';

/** Number of bits in one set, which is a power of two. */
const BITS_LOG = 19;
/**
 * Maximum number of names in a set. With two sets of 16 bits per name, about one new name in several hundred appears to
 * be known.
 */
const NAMES_MAX = 16_384;

/**
 * Remembers the most recent names, of which there are between `NAMES_MAX` and twice as many. It is a Bloom filter with
 * two sets of bits. Names are added to the newer set. When that is full, the names in the older set are dropped and the
 * two sets switch roles.
 */
export class NameFilter {
  #newer = new Uint32Array(2 ** (BITS_LOG - 5));
  #older = new Uint32Array(2 ** (BITS_LOG - 5));
  #count = 0;

  /**
   * Adds a name (lower case).
   * @returns true if it was already known
   */
  again(name: Uint8Array, length: number): boolean {
    const hash = hashBytes(name, 0, length);
    const first = hash >>> (32 - BITS_LOG);
    const second = Math.imul(hash, 0x9e3779b1) >>> (32 - BITS_LOG);
    if (has(this.#newer, first) && has(this.#newer, second)) return true;
    const isOld = has(this.#older, first) && has(this.#older, second);
    if (this.#count === NAMES_MAX) {
      [this.#newer, this.#older] = [this.#older.fill(0), this.#newer];
      this.#count = 0;
    }
    set(this.#newer, first);
    set(this.#newer, second);
    this.#count++;
    return isOld;
  }
}

function has(bits: Uint32Array, at: number): boolean {
  return (bits[at >>> 5]! & (1 << (at & 31))) !== 0;
}

function set(bits: Uint32Array, at: number): void {
  bits[at >>> 5]! |= 1 << (at & 31);
}
