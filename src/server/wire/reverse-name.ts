/** Reverse names, which represent addresses, in in-addr.arpa and ip6.arpa. */
import { parseName, suffixAt } from './name.ts';

/**
 * Returns the absolute name in in-addr.arpa or ip6.arpa (RFC 1035 section 3.5, RFC 3596 section 2.5).
 * @param bytes 4 or 16 bytes
 */
export function nameOfAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return `${[...bytes].reverse().join('.')}.in-addr.arpa.`;
  const nibbles = [...bytes].flatMap((byte) => [byte >> 4, byte & 15]);
  return `${nibbles
    .reverse()
    .map((nibble) => nibble.toString(16))
    .join('.')}.ip6.arpa.`;
}

export type ReverseNameKind =
  /** Not in a reverse tree. */
  | 'none'
  /** The address is in `address[0, length)`. */
  | 'address'
  /** In a reverse tree, but not a complete address. */
  | 'other';

/**
 * Extracts addresses from names such as `4.3.2.1.in-addr.arpa.` (RFC 1035 section 3.5, RFC 3596 section 2.5). An
 * instance can be reused.
 */
export class ReverseReader {
  readonly address: Uint8Array<ArrayBuffer> = new Uint8Array(16);
  /** 4 or 16. */
  length = 0;

  /** @param folded the name in lower case and wire form, of which only the first `end` bytes count */
  read(folded: Uint8Array, end: number): ReverseNameKind {
    if (suffixAt(folded, V4_TREE, end) >= 0)
      return this.#v4(folded, end - V4_TREE.length) ? 'address' : 'other';
    if (suffixAt(folded, V6_TREE, end) >= 0)
      return this.#v6(folded, end - V6_TREE.length) ? 'address' : 'other';
    return 'none';
  }

  #v4(folded: Uint8Array, end: number): boolean {
    this.length = 4;
    let at = 0;
    for (let i = 3; i >= 0; i--) {
      const size = folded[at]!;
      if (at >= end || size < 1 || size > 3) return false;
      let value = 0;
      for (let digit = at + 1; digit <= at + size; digit++) {
        const number = folded[digit]! - 0x30;
        if (number < 0 || number > 9) return false;
        value = 10 * value + number;
      }
      // No program prints a number as `01`.
      if (value > 255 || (size > 1 && folded[at + 1] === 0x30)) return false;
      this.address[i] = value;
      at += size + 1;
    }
    return at === end;
  }

  #v6(folded: Uint8Array, end: number): boolean {
    this.length = 16;
    if (end !== 64) return false;
    for (let i = 0; i < 32; i++) {
      const nibble = folded[2 * i] === 1 ? hex(folded[2 * i + 1]!) : -1;
      if (nibble < 0) return false;
      const at = 15 - (i >> 1);
      this.address[at] = (i & 1) === 0 ? nibble : this.address[at]! | (nibble << 4);
    }
    return true;
  }
}

function hex(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x61 + 10 : -1;
}

const V4_TREE = parseName('in-addr.arpa.');
const V6_TREE = parseName('ip6.arpa.');
