/**
 * Interns strings that recur as bytes, such as names and addresses. Each is converted once and later found by its
 * bytes, without a key object.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';

/** Limits on the number of strings and on their bytes. Once either is reached, all strings are dropped. */
const KNOWN_MAX = 20_000;
const BYTES_MAX = 2 * 1024 * 1024;
/** The number of slots in the hash table, a power of two. It doubles while more than a quarter of the slots are used. */
const PLACES = { first: 1024, most: 65_536 } as const;
/** The number of slots per bucket, a power of two. A full bucket drops its first string. */
const BESIDE = 4;

/** Returns the same string for the same bytes as long as it is cached. */
export class KnownTexts {
  /** The 32-bit FNV-1a hash of the bytes that were last looked up. */
  hash: number = 0;
  readonly #print: (bytes: Uint8Array, start: number, end: number) => string;
  /** The strings' numbers, from 1; 0: free. */
  #places = new Uint16Array(PLACES.first);
  readonly #texts: string[] = [];
  /** The bytes of all strings, one after another, and where each string ends. */
  #bytes = new Uint8Array(4096);
  #ends = new Uint32Array(PLACES.first / 4 + 2);

  /** @param print converts `bytes[start, end)` to a string */
  constructor(print: (bytes: Uint8Array, start: number, end: number) => string) {
    this.#print = print;
  }

  get size(): number {
    return this.#texts.length;
  }

  of(bytes: Uint8Array, start: number, end: number): string {
    const hash = (this.hash = hashOf(bytes, start, end));
    const first = this.#bucket(hash);
    let place = first;
    for (; place < first + BESIDE; place++) {
      const number = this.#places[place]!;
      if (number === 0) break;
      if (this.#isOf(number, bytes, start, end)) return this.#texts[number - 1]!;
    }
    const text = this.#print(bytes, start, end);
    if (this.#texts.length === KNOWN_MAX || this.#used + end - start > BYTES_MAX) {
      this.#forget();
      place = first;
    }
    this.#places[place < first + BESIDE ? place : first] = this.#add(text, bytes, start, end);
    const { length } = this.#places;
    if (4 * this.#texts.length > length && length < PLACES.most) this.#grow();
    return text;
  }

  #bucket(hash: number): number {
    return (hash ^ (hash >>> 15)) & (this.#places.length - BESIDE);
  }

  #grow(): void {
    const length = 2 * this.#places.length;
    this.#places = new Uint16Array(length);
    const most = length < PLACES.most ? length / 4 + 1 : KNOWN_MAX;
    const ends = new Uint32Array(most + 1);
    ends.set(this.#ends);
    this.#ends = ends;
    for (let number = 1; number <= this.#texts.length; number++) {
      const first = this.#bucket(hashOf(this.#bytes, ends[number - 1]!, ends[number]!));
      let place = first;
      while (place < first + BESIDE && this.#places[place] !== 0) place++;
      this.#places[place < first + BESIDE ? place : first] = number;
    }
  }

  get #used(): number {
    return this.#ends[this.#texts.length]!;
  }

  #isOf(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    const known = this.#bytes;
    const from = this.#ends[number - 1]!;
    if (this.#ends[number]! - from !== end - start) return false;
    for (let at = start; at < end; at++) if (known[from + at - start] !== bytes[at]) return false;
    return true;
  }

  /** @returns the string's number */
  #add(text: string, bytes: Uint8Array, start: number, end: number): number {
    let to = this.#used;
    this.#makeRoom(to + end - start);
    for (let at = start; at < end; at++) this.#bytes[to++] = bytes[at]!;
    const number = this.#texts.push(text);
    this.#ends[number] = to;
    return number;
  }

  #forget(): void {
    this.#texts.length = 0;
    this.#places.fill(0);
  }

  #makeRoom(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = FIXED_HASH_START;
  for (let at = start; at < end; at++) hash = nextFixedHash(hash, bytes[at]!);
  return hash;
}
