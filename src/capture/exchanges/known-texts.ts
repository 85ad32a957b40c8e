/** Texts of what is met again and again as bytes (names, addresses): printed once, and found by their bytes without making a key of them. */
import { HASH_START, mixedHash, nextHash } from '../../base/hash.ts';

/** Texts that are known, and bytes that they may have together; when there are more, all are forgotten. */
const KNOWN_MAX = 20_000;
const BYTES_MAX = 2 * 1024 * 1024;
/** Places at which a text is looked for first, by a hash of its bytes; a power of two. */
const PLACES = 16_384;

interface Known {
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** Equal bytes have one and the same text, as long as it is known. */
export class KnownTexts {
  /** Of the bytes that were last asked for: 32 bits (FNV-1a). */
  hash: number = 0;
  readonly #print: (bytes: Buffer) => string;
  readonly #recent: (Known | undefined)[] = Array.from({ length: PLACES });
  /** By 30 bits of the hash; of two that are equal by chance the later one is known. */
  readonly #all = new Map<number, Known>();
  #bytes = 0;

  /** @param print what bytes read as; they are its own */
  constructor(print: (bytes: Buffer) => string) {
    this.#print = print;
  }

  /** How many are known. */
  get size(): number {
    return this.#all.size;
  }

  /** The text of `bytes[start, end)`. */
  of(bytes: Uint8Array, start: number, end: number): string {
    let hash = HASH_START;
    for (let at = start; at < end; at++) hash = nextHash(hash, bytes[at]!);
    this.hash = hash;
    const place = mixedHash(hash) & (PLACES - 1);
    const recent = this.#recent[place];
    if (recent !== undefined && isSame(recent.bytes, bytes, start, end)) return recent.text;
    const known = this.#all.get(hash & 0x3fff_ffff);
    if (known !== undefined && isSame(known.bytes, bytes, start, end)) {
      this.#recent[place] = known;
      return known.text;
    }
    this.#bytes += end - start;
    if (this.#all.size >= KNOWN_MAX || this.#bytes > BYTES_MAX) this.#forget(end - start);
    const own = Buffer.from(bytes.subarray(start, end));
    const made = { bytes: own, text: this.#print(own) };
    this.#all.set(hash & 0x3fff_ffff, made);
    this.#recent[place] = made;
    return made.text;
  }

  /** Forgets all, but for one that has come. */
  #forget(bytes: number): void {
    this.#all.clear();
    this.#recent.fill(undefined);
    this.#bytes = bytes;
  }
}

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = known;
  if (length !== end - start) return false;
  for (let at = 0; at < length; at++) if (known[at] !== bytes[start + at]) return false;
  return true;
}
