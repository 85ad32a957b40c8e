import { LOWER } from './name.ts';

/**
 * Returns true if the names at `a` and `b` in one message, which may be compressed, are equal except for ASCII case.
 * The names must have been checked (`checkName`) or written by this program.
 * @param start start of the message, from which compression pointers are counted
 */
export function sameInMessage(bytes: Uint8Array, start: number, a: number, b: number): boolean {
  for (;;) {
    let size = bytes[a]!;
    while (size >= 0xc0) {
      a = start + (((size & 0x3f) << 8) | bytes[a + 1]!);
      size = bytes[a]!;
    }
    let other = bytes[b]!;
    while (other >= 0xc0) {
      b = start + (((other & 0x3f) << 8) | bytes[b + 1]!);
      other = bytes[b]!;
    }
    if (size !== other) return false;
    if (size === 0 || a === b) return true;
    for (let i = 1; i <= size; i++) {
      if (LOWER[bytes[a + i]!] !== LOWER[bytes[b + i]!]) return false;
    }
    a += size + 1;
    b += size + 1;
  }
}
