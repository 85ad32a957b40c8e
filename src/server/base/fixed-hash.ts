/**
 * 32-bit FNV-1a, for values that must be the same in every run. Collisions are easy to construct, so tables whose keys
 * come from clients use `hash.ts` instead.
 */

/** The initial value, which is also the hash of empty input. */
export const FIXED_HASH_START: number = 0x811c9dc5 | 0;

/** Extends `hash` by one more byte or number. */
export function nextFixedHash(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}
