/** A table from addresses and hashes to numbers that needs no object per entry. */
import { hashPair } from '../../../base/hash.ts';
import { readUint32 } from '../../../base/big-endian.ts';

const GROW_AT = 0.7;
const SIZE_MIN = 16;

/**
 * A compact multimap from keys with a fixed number of 32-bit words to non-negative integers. One word is an IPv4
 * address, two are a 64-bit hash, and four are an IPv6 address. It uses only typed arrays, with 8 to 20 bytes per slot.
 * Open addressing with linear probing is used; a removal moves later entries back, so there are no tombstones. The same
 * pair can be stored several times.
 */
export class Multimap {
  readonly width: number;
  #keys: Int32Array;
  /** The value + 1; 0 marks a free slot. */
  #values: Int32Array;
  #mask: number;
  #size = 0;

  constructor(width: number) {
    this.width = width;
    this.#keys = new Int32Array(SIZE_MIN * width);
    this.#values = new Int32Array(SIZE_MIN);
    this.#mask = SIZE_MIN - 1;
  }

  get size(): number {
    return this.#size;
  }

  /** Size of the table in bytes. */
  get bytes(): number {
    return this.#keys.byteLength + this.#values.byteLength;
  }

  /** Adds a pair whose key is `key[at, at + width)`. */
  add(key: Int32Array, at: number, value: number): void {
    if (this.#size + 1 > (this.#mask + 1) * GROW_AT) this.#resize(2 * (this.#mask + 1));
    this.#insert(key, at, value);
    this.#size++;
  }

  /** Removes one pair like this. Returns false if there is none. */
  remove(key: Int32Array, at: number, value: number): boolean {
    for (let slot = this.find(key, at); slot >= 0; slot = this.findNext(key, at, slot)) {
      if (this.#values[slot] === value + 1) {
        this.#vacate(slot);
        if (--this.#size < (this.#mask + 1) * 0.2 && this.#mask >= SIZE_MIN) {
          this.#resize((this.#mask + 1) / 2);
        }
        return true;
      }
    }
    return false;
  }

  /** Returns the slot of the first pair with this key, or -1. Slots are valid until the next change. */
  find(key: Int32Array, at: number): number {
    return this.#probe(key, at, this.#home(key, at));
  }

  /** Returns the slot of the next pair after `slot` with the same key, or -1. */
  findNext(key: Int32Array, at: number, slot: number): number {
    return this.#probe(key, at, (slot + 1) & this.#mask);
  }

  value(slot: number): number {
    return this.#values[slot]! - 1;
  }

  set(slot: number, value: number): void {
    this.#values[slot] = value + 1;
  }

  #probe(key: Int32Array, at: number, slot: number): number {
    const keys = this.#keys;
    const values = this.#values;
    const mask = this.#mask;
    const { width } = this;
    const first = key[at]!;
    for (; values[slot] !== 0; slot = (slot + 1) & mask) {
      if (keys[slot * width] !== first) continue;
      let same = 1;
      while (same < width && keys[slot * width + same] === key[at + same]) same++;
      if (same === width) return slot;
    }
    return -1;
  }

  #insert(key: Int32Array, at: number, value: number): void {
    const { width } = this;
    let slot = this.#home(key, at);
    while (this.#values[slot] !== 0) slot = (slot + 1) & this.#mask;
    for (let i = 0; i < width; i++) this.#keys[slot * width + i] = key[at + i]!;
    this.#values[slot] = value + 1;
  }

  #home(key: Int32Array, at: number): number {
    let hash = hashPair(key[at]!, this.width);
    for (let i = 1; i < this.width; i++) hash = hashPair(hash, key[at + i]!);
    return hash & this.#mask;
  }

  #vacate(slot: number): void {
    const { width } = this;
    const keys = this.#keys;
    const values = this.#values;
    const mask = this.#mask;
    let hole = slot;
    for (let at = (hole + 1) & mask; values[at] !== 0; at = (at + 1) & mask) {
      const home = this.#home(keys, at * width);
      // An entry may move into the hole unless its home slot is between the hole and its current slot.
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      for (let i = 0; i < width; i++) keys[hole * width + i] = keys[at * width + i]!;
      values[hole] = values[at]!;
      hole = at;
    }
    values[hole] = 0;
  }

  #resize(size: number): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Int32Array(size * this.width);
    this.#values = new Int32Array(size);
    this.#mask = size - 1;
    for (let slot = 0; slot < values.length; slot++) {
      if (values[slot] !== 0) this.#insert(keys, slot * this.width, values[slot]! - 1);
    }
  }
}

/** A multimap whose keys are the 4 or 16 bytes of an address, `bytes[at, at + length)`. */
export class AddressTable {
  readonly #v4 = new Multimap(1);
  readonly #v6 = new Multimap(4);
  readonly #key = new Int32Array(4);
  #found: Multimap = this.#v4;
  #slot = -1;

  get size(): number {
    return this.#v4.size + this.#v6.size;
  }

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

/** Copies the 4 or 16 address bytes at `at` into `key` as one or four 32-bit words, and returns `key`. */
function addressKey(bytes: Uint8Array, at: number, length: number, key: Int32Array): Int32Array {
  for (let word = 0; word < length >> 2; word++, at += 4) key[word] = readUint32(bytes, at);
  return key;
}
