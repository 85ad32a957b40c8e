/**
 * Hashes for tables whose keys others choose (FNV-1a, 32 bits), byte by byte: the caller loops
 * over the key, so nothing is copied or allocated.
 *
 * ```ts
 * let hash = hashSeed();
 * for (const byte of key) hash = nextHash(hash, byte);
 * const slot = mixedHash(hash) & mask;
 * ```
 */

/** FNV-1a's own initial value: for hashes that must be the same in every run. */
export const HASH_START: number = 0x811c9dc5 | 0;

let seed = HASH_START;

/**
 * Sets the initial value of all hashes of this thread. A server draws it at random before it makes
 * the first table: clients must not know which names collide, or they could make every lookup long.
 */
export function seedHashes(drawn: number): void {
  seed = drawn | 0;
}

/**
 * The initial value of this thread's hashes. A table that other threads read, too, must carry the
 * seed with which it was made.
 */
export function hashSeed(): number {
  return seed;
}

/** The hash of what `hash` stands for, followed by one more byte or number. */
export function nextHash(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}

/** Mixes the high bits into the low ones, of which a table uses only a few. */
export function mixedHash(hash: number): number {
  return hash ^ (hash >>> 15);
}
