/**
 * Hashes for tables whose keys others choose (FNV-1a, 32 bits), byte by byte: a loop over the key is its owner's, so nothing is
 * copied or made.
 *
 * ```ts
 * let hash = hashSeed();
 * for (const byte of key) hash = nextHash(hash, byte);
 * const slot = mixedHash(hash) & mask;
 * ```
 */

/** FNV-1a's own beginning: for hashes that must be the same in every run. */
export const HASH_START: number = 0x811c9dc5 | 0;

let seed = HASH_START;

/**
 * Begins all hashes of this thread with another number from now on. A server draws it at random before it makes the first table:
 * clients must not know which names meet in one place of a table, or they could make every look into it long.
 */
export function seedHashes(drawn: number): void {
  seed = drawn | 0;
}

/** What this thread's hashes begin with. A table that others look into as well goes with the seed it was made by. */
export function hashSeed(): number {
  return seed;
}

/** The hash of what `hash` stands for and one more byte, or number. */
export function nextHash(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}

/** Lets the high bits reach the low ones, of which a table uses only a few. */
export function mixedHash(hash: number): number {
  return hash ^ (hash >>> 15);
}
