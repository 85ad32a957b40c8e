/**
 * Texts of what is met again and again as bytes (names, addresses): printed once, and found by
 * their bytes without making a key of them.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../../server/base/fixed-hash.ts';

/**
 * Texts that are known, and bytes that they may have together; when there are more, all are
 * forgotten.
 */
const KNOWN_MAX = 20_000;
const BYTES_MAX = 2 * 1024 * 1024;
/** Places for the numbers of texts, by a hash of their bytes; a power of two. */
const PLACES = 65_536;
/**
 * Places that lie side by side for the same hashes, a power of two: of more texts the first is
 * known no more.
 */
const BESIDE = 4;

/**
 * Equal bytes have one and the same text, as long as it is known. What is never met again leaves
 * nothing behind but its text.
 */
export class KnownTexts {
  /** Of the bytes that were last asked for: 32 bits (FNV-1a). */
  hash: number = 0;
  readonly #print: (bytes: Uint8Array, start: number, end: number) => string;
  /** Numbers of texts, counted from 1; 0: free. */
  readonly #places = new Uint16Array(PLACES);
  readonly #texts: string[] = [];
  /** The bytes of all texts, one after the other, and by number where they end. */
  #bytes = new Uint8Array(16 * 1024);
  readonly #ends = new Uint32Array(KNOWN_MAX + 1);

  /** @param print what `bytes[start, end)` reads as */
  constructor(print: (bytes: Uint8Array, start: number, end: number) => string) {
    this.#print = print;
  }

  /** How many are known. */
  get size(): number {
    return this.#texts.length;
  }

  /** The text of `bytes[start, end)`. */
  of(bytes: Uint8Array, start: number, end: number): string {
    let hash = FIXED_HASH_START;
    for (let at = start; at < end; at++) hash = nextFixedHash(hash, bytes[at]!);
    this.hash = hash;
    const first = (hash ^ (hash >>> 15)) & (PLACES - BESIDE);
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
    return text;
  }

  /** Bytes of all texts. */
  get #used(): number {
    return this.#ends[this.#texts.length]!;
  }

  /** Whether these bytes are those of the text with this number. */
  #isOf(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    const known = this.#bytes;
    const from = this.#ends[number - 1]!;
    if (this.#ends[number]! - from !== end - start) return false;
    for (let at = start; at < end; at++) if (known[from + at - start] !== bytes[at]) return false;
    return true;
  }

  /** @returns the number of the text */
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
