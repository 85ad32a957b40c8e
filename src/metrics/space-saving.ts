/** The most frequent keys of a stream that has any number of different ones, in constant memory. */
import { hashSeed, mixedHash, nextHash } from '../base/hash.ts';

/** Bytes of one key at most; longer ones are counted by their first so many. */
const KEY_MAX = 255;

/**
 * The Space-Saving sketch (Metwally, Agrawal, El Abbadi 2005): counts as many keys as it has slots. A key that is new when all slots are taken
 * takes over the one with the lowest count and goes on from there, so a count is never too low, and too high by at most `error`. With n
 * slots, every key that makes up more than 1/n of the stream has one.
 *
 * Keys are bytes. Counting allocates nothing and takes a few comparisons in a heap, whatever the keys are: an attacker who invents keys
 * only ever pushes out the least of them.
 */
export class SpaceSaving {
  /** Slots that are taken: their numbers are 0 to `size` - 1. */
  size = 0;
  /** Whether the last `add` gave its slot to another key than before. */
  replaced = false;
  readonly capacity: number;
  readonly #width: number;
  readonly #keys: Uint8Array;
  readonly #lengths: Uint8Array;
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  /** Slots as a heap, lowest count first, and where in it each slot is. */
  readonly #heap: Int32Array;
  readonly #place: Int32Array;
  /** First slot of each chain of keys with one hash, and the next one of each slot; -1: none. */
  readonly #chains: Int32Array;
  readonly #next: Int32Array;
  readonly #hashes: Int32Array;

  /** @param width bytes of a key at most, up to 255 */
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

  /** Counts the key `bytes[at, at + length)`. @returns its slot */
  add(bytes: Uint8Array, at: number, length: number, amount = 1): number {
    return this.addHashed(
      hashOf(bytes, at, Math.min(length, this.#width)),
      bytes,
      at,
      length,
      amount,
    );
  }

  /** The same with the key's hash, for who has one already: the same for the same key, whoever counts it here. */
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

  /** The slot of a key, or -1. */
  find(bytes: Uint8Array, at: number, length: number): number {
    const size = Math.min(length, this.#width);
    return this.#find(hashOf(bytes, at, size), bytes, at, size);
  }

  /** How often the key of the slot came, at most. */
  count(slot: number): number {
    return this.#counts[slot]!;
  }

  /** How much of the count may be others'. */
  error(slot: number): number {
    return this.#errors[slot]!;
  }

  /** The key of a slot: a view that holds until the slot is another's. */
  key(slot: number): Uint8Array {
    const from = slot * this.#width;
    return this.#keys.subarray(from, from + this.#lengths[slot]!);
  }

  /** The slots with the highest counts, highest first. */
  top(slots: number): readonly number[] {
    return Array.from({ length: this.size }, (_, slot) => slot)
      .sort((a, b) => this.#counts[b]! - this.#counts[a]! || a - b)
      .slice(0, slots);
  }

  /** Halves all counts, so that what came long ago weighs less than what comes now. The order stays. */
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

  /** A slot that nobody has had; it stands at the end of the heap, where its count of 0 does not belong: it has to rise. */
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

  /** Moves what stands at `at` of the heap down to where it belongs. */
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

function hashOf(bytes: Uint8Array, at: number, length: number): number {
  let hash = hashSeed();
  for (const end = at + length; at < end; at++) hash = nextHash(hash, bytes[at]!);
  return mixedHash(hash);
}
