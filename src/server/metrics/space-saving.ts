/** Finds the most frequent keys in a stream of any number of different keys, using constant memory. */
import { hashBytes } from '../base/hash.ts';

/** Maximum key size in bytes. Longer keys are truncated. */
const KEY_MAX = 255;

/**
 * The Space-Saving sketch (Metwally, Agrawal, El Abbadi 2005), which counts as many keys as it has slots. If all slots
 * are in use, a new key replaces the one with the lowest count and continues from that count. A count is therefore
 * never too low, and is too high by at most `error`. With n slots, every key that makes up more than 1/n of the stream
 * has one. Keys are bytes. Counting allocates nothing and takes a few heap comparisons for any key. An attacker who
 * sends random keys displaces only the least frequent ones.
 */
export class SpaceSaving {
  /** Number of slots in use: 0 to `size` - 1. */
  size = 0;
  /** True if the last `add` replaced the key in its slot. */
  replaced = false;
  readonly capacity: number;
  readonly #width: number;
  readonly #keys: Uint8Array;
  readonly #lengths: Uint8Array;
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  /** Slots as a heap, with the lowest count first, and each slot's position in the heap. */
  readonly #heap: Int32Array;
  readonly #place: Int32Array;
  /**
   * The first slot in each chain of keys with the same hash bits, and for each slot the next one in the chain. -1 means
   * none.
   */
  readonly #chains: Int32Array;
  readonly #next: Int32Array;
  readonly #hashes: Int32Array;

  /** @param width maximum key size in bytes, up to 255 */
  constructor(capacity: number, width: number) {
    this.capacity = capacity;
    this.#width = Math.min(width, KEY_MAX);
    this.#keys = new Uint8Array(capacity * this.#width);
    this.#lengths = new Uint8Array(capacity);
    this.#counts = new Float64Array(capacity);
    this.#errors = new Float64Array(capacity);
    this.#heap = new Int32Array(capacity);
    this.#place = new Int32Array(capacity);
    let chains = 8;
    while (chains < capacity) chains *= 2;
    this.#chains = new Int32Array(chains).fill(-1);
    this.#next = new Int32Array(capacity);
    this.#hashes = new Int32Array(capacity);
  }

  /**
   * Counts the key `bytes[at, at + length)`.
   * @returns its slot
   */
  add(bytes: Uint8Array, at: number, length: number, amount = 1): number {
    return this.addHashed(
      hashBytes(bytes, at, at + Math.min(length, this.#width)),
      bytes,
      at,
      length,
      amount,
    );
  }

  /** Counts a key whose hash the caller already has. All keys must be counted with the same hash function. */
  addHashed(hash: number, bytes: Uint8Array, at: number, length: number, amount = 1): number {
    const size = Math.min(length, this.#width);
    const known = this.#find(hash, bytes, at, size);
    this.replaced = known < 0;
    if (known >= 0) {
      this.#counts[known]! += amount;
      this.#sink(this.#place[known]!);
      return known;
    }
    const slot = this.size < this.capacity ? this.#open() : this.#takeOver();
    this.#name(slot, hash, bytes, at, size);
    this.#counts[slot]! += amount;
    this.#sink(this.#place[slot]!);
    return slot;
  }

  /** Returns a key's slot, or -1 if it has none. */
  find(bytes: Uint8Array, at: number, length: number): number {
    const size = Math.min(length, this.#width);
    return this.#find(hashBytes(bytes, at, at + size), bytes, at, size);
  }

  /** Returns a slot's count, which is an upper bound on its key's occurrences. */
  count(slot: number): number {
    return this.#counts[slot]!;
  }

  /** Returns the part of the count that may belong to other keys. */
  error(slot: number): number {
    return this.#errors[slot]!;
  }

  /** Returns a slot's key as a view that is valid until the slot gets another key. */
  key(slot: number): Uint8Array {
    const from = slot * this.#width;
    return this.#keys.subarray(from, from + this.#lengths[slot]!);
  }

  /** Returns the slots with the highest counts, highest first. */
  top(slots: number): readonly number[] {
    return Array.from({ length: this.size }, (_, slot) => slot)
      .sort((a, b) => this.#counts[b]! - this.#counts[a]! || a - b)
      .slice(0, slots);
  }

  /** Halves all counts, so that recent keys carry more weight than old ones. The order does not change. */
  halve(): void {
    for (let slot = 0; slot < this.size; slot++) {
      this.#counts[slot]! /= 2;
      this.#errors[slot]! /= 2;
    }
  }

  #find(hash: number, bytes: Uint8Array, at: number, length: number): number {
    for (let slot = this.#chains[this.#chain(hash)]!; slot >= 0; slot = this.#next[slot]!) {
      if (this.#hashes[slot] === hash && this.#holds(slot, bytes, at, length)) return slot;
    }
    return -1;
  }

  #holds(slot: number, bytes: Uint8Array, at: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const from = slot * this.#width;
    for (let i = 0; i < length; i++) if (this.#keys[from + i] !== bytes[at + i]) return false;
    return true;
  }

  /**
   * Opens an unused slot. It is added at the end of the heap and moved to the root, because its count of 0 is the
   * lowest.
   */
  #open(): number {
    const slot = this.size++;
    this.#heap[slot] = slot;
    this.#place[slot] = slot;
    for (let at = slot; at > 0;) {
      const parent = (at - 1) >> 1;
      this.#swap(at, parent);
      at = parent;
    }
    return slot;
  }

  #takeOver(): number {
    const slot = this.#heap[0]!;
    this.#errors[slot] = this.#counts[slot]!;
    const chain = this.#chain(this.#hashes[slot]!);
    const after = this.#next[slot]!;
    if (this.#chains[chain] === slot) this.#chains[chain] = after;
    else {
      let before = this.#chains[chain]!;
      while (this.#next[before] !== slot) before = this.#next[before]!;
      this.#next[before] = after;
    }
    return slot;
  }

  #name(slot: number, hash: number, bytes: Uint8Array, at: number, length: number): void {
    const from = slot * this.#width;
    for (let i = 0; i < length; i++) this.#keys[from + i] = bytes[at + i]!;
    this.#lengths[slot] = length;
    this.#hashes[slot] = hash;
    const chain = this.#chain(hash);
    this.#next[slot] = this.#chains[chain]!;
    this.#chains[chain] = slot;
  }

  #chain(hash: number): number {
    return hash & (this.#chains.length - 1);
  }

  /** Moves the slot at heap index `at` down to its position. */
  #sink(at: number): void {
    const heap = this.#heap;
    const counts = this.#counts;
    for (;;) {
      let least = at;
      for (let child = 2 * at + 1; child <= 2 * at + 2 && child < this.size; child++)
        if (counts[heap[child]!]! < counts[heap[least]!]!) least = child;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    const slot = heap[a]!;
    heap[a] = heap[b]!;
    heap[b] = slot;
    this.#place[heap[a]] = a;
    this.#place[slot] = b;
  }
}
