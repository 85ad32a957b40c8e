/** A table from IPv4 and IPv6 addresses to numbers. */
import { addressKey, Multimap } from '../contract/multimap.ts';

/** A multimap whose keys are the 4 or 16 bytes of an address, `bytes[at, at + length)`. */
export class AddressTable {
  readonly #v4 = new Multimap(1);
  readonly #v6 = new Multimap(4);
  readonly #key = new Int32Array(4);
  #found: Multimap = this.#v4;
  #slot = -1;

  add(bytes: Uint8Array, at: number, length: number, value: number): void {
    this.#of(length).add(addressKey(bytes, at, length, this.#key), 0, value);
  }

  remove(bytes: Uint8Array, at: number, length: number, value: number): void {
    this.#of(length).remove(addressKey(bytes, at, length, this.#key), 0, value);
  }

  /** Returns an address's first number, or -1. */
  first(bytes: Uint8Array, at: number, length: number): number {
    this.#found = this.#of(length);
    this.#slot = this.#found.find(addressKey(bytes, at, length, this.#key), 0);
    return this.#slot < 0 ? -1 : this.#found.value(this.#slot);
  }

  /** Returns the next number after the one that `first` or `next` returned, or -1. Valid until the table changes. */
  next(): number {
    this.#slot = this.#found.findNext(this.#key, 0, this.#slot);
    return this.#slot < 0 ? -1 : this.#found.value(this.#slot);
  }

  #of(length: number): Multimap {
    return length === 4 ? this.#v4 : this.#v6;
  }
}
