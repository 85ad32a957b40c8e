/** Names that have come before, told in constant memory. */
import { hashSeed, mixedHash, nextHash } from '../../base/hash.ts';

/** Bits of the filter, and after how many names it begins anew: until then one of some hundred names is taken for another one. */
const BITS_LOG = 18;
const NAMES_MAX = 16_384;

/** A filter (Bloom's, two bits a name) that knows the last ten thousand names or so: whoever came once is told from who comes again. */
export class NameFilter {
  readonly #bits = new Uint32Array(2 ** (BITS_LOG - 5));
  #count = 0;

  /** Takes note of a name (lower case). @returns whether it came before */
  again(name: Uint8Array, length: number): boolean {
    let hash = hashSeed();
    for (let i = 0; i < length; i++) hash = nextHash(hash, name[i]!);
    hash = mixedHash(hash);
    const first = this.#set(hash);
    const second = this.#set(Math.imul(hash, 0x9e3779b1));
    if (first && second) return true;
    if (++this.#count >= NAMES_MAX) {
      this.#bits.fill(0);
      this.#count = 0;
    }
    return false;
  }

  /** Sets the bit that the high bits of a hash name. @returns whether it was set */
  #set(hash: number): boolean {
    const at = hash >>> (32 - BITS_LOG);
    const bit = 1 << (at & 31);
    const before = this.#bits[at >>> 5]!;
    this.#bits[at >>> 5] = before | bit;
    return (before & bit) !== 0;
  }
}
