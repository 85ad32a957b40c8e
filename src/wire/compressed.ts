import { LOWER } from './name.ts';

/**
 * Names as they stand in a message: possibly compressed. All of this takes messages whose names were checked
 * (`checkName`) or written here.
 */

/** Whether the names at `a` and `b` of one message are the same but for ASCII case. */
export function sameInMessage(bytes: Uint8Array, start: number, a: number, b: number): boolean {
  return sameAcross(bytes, start, a, bytes, start, b);
}

/** Whether the name at `a` of one message and the name at `b` of another are the same but for ASCII case. */
export function sameAcross(
  one: Uint8Array,
  oneStart: number,
  a: number,
  other: Uint8Array,
  otherStart: number,
  b: number,
): boolean {
  const same = one === other && oneStart === otherStart;
  for (;;) {
    let size = one[a]!;
    while (size >= 0xc0) {
      a = oneStart + (((size & 0x3f) << 8) | one[a + 1]!);
      size = one[a]!;
    }
    let length = other[b]!;
    while (length >= 0xc0) {
      b = otherStart + (((length & 0x3f) << 8) | other[b + 1]!);
      length = other[b]!;
    }
    if (size !== length) return false;
    if (size === 0 || (same && a === b)) return true;
    for (let i = 1; i <= size; i++) if (LOWER[one[a + i]!] !== LOWER[other[b + i]!]) return false;
    a += size + 1;
    b += size + 1;
  }
}

/** Length of the name at `at` in wire form once it is decompressed, root byte included. */
export function expandedLength(bytes: Uint8Array, start: number, at: number): number {
  let length = 1;
  for (let size = bytes[at]!; size > 0; size = bytes[at]!) {
    if (size >= 0xc0) {
      at = start + (((size & 0x3f) << 8) | bytes[at + 1]!);
    } else {
      length += size + 1;
      at += size + 1;
    }
  }
  return length;
}
