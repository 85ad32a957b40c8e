/**
 * FNV-1a, 32 bits: for numbers that must be the same in every run. Tables whose keys others choose
 * use `hash.ts`: names that collide under this one are easy to make.
 */

/** The hash of nothing, with which every hash begins. */
export const FIXED_HASH_START: number = 0x811c9dc5 | 0;

/** The hash of the input of `hash`, followed by one more byte or number. */
export function nextFixedHash(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}
