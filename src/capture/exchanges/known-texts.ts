/** Texts of what is met again and again as bytes (names, addresses): printed once, and found by their bytes without making a key of them. */
import { HASH_START, mixedHash, nextHash } from '../../base/hash.ts';

/** Texts that are known; when there are more, all are forgotten. */
const KNOWN_MAX = 100_000;
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
  readonly #all = new Map<string, string>();

  /** @param print what bytes read as; they are its own */
  constructor(print: (bytes: Buffer) => string) {
    this.#print = print;
  }

  /** The text of `bytes[start, end)`. */
  of(bytes: Uint8Array, start: number, end: number): string {
    let hash = HASH_START;
    for (let at = start; at < end; at++) hash = nextHash(hash, bytes[at]!);
    this.hash = hash;
    const place = mixedHash(hash) & (PLACES - 1);
    const recent = this.#recent[place];
    if (recent !== undefined && isSame(recent.bytes, bytes, start, end)) return recent.text;
    const own = Buffer.from(bytes.subarray(start, end));
    const key = own.toString('latin1');
    let text = this.#all.get(key);
    if (text === undefined) {
      if (this.#all.size >= KNOWN_MAX) this.#all.clear();
      text = this.#print(own);
      this.#all.set(key, text);
    }
    this.#recent[place] = { bytes: own, text };
    return text;
  }
}

function isSame(known: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = known;
  if (length !== end - start) return false;
  for (let at = 0; at < length; at++) if (known[at] !== bytes[start + at]) return false;
  return true;
}
