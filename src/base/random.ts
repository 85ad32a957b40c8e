import { builtins } from './builtins.ts';

/** Randomness as a parameter, so that tests can repeat a run. */
export interface Random {
  /** A uniformly drawn integer in [0, below); `below` from 1 to 2^32. */
  integer(below: number): number;
}

const pool = new Uint32Array(1024);
let used = pool.length;

/** From the operating system's generator: fit for ids and ports that an attacker must not guess. */
export const secureRandom: Random = {
  integer(below) {
    // Rejection keeps every value equally likely: as many words as 2^32 has above its last whole multiple are drawn again. In
    // 32-bit integers, for which a remainder is one instruction.
    const excess = (-below >>> 0) % below;
    for (;;) {
      if (used === pool.length) {
        if (!fillFromDevice(pool)) builtins.crypto().randomFillSync(pool);
        used = 0;
      }
      const word = pool[used++]!;
      if (word >= excess) return word % below;
    }
  },
};

/**
 * Asks the operating system for it at its device: `node:crypto` draws from the same, and takes a MiB in each thread that loads it.
 * @returns false: there is no such device here
 */
function fillFromDevice(words: Uint32Array): boolean {
  const { closeSync, fstatSync, openSync, readSync } = builtins.files();
  let device: number | null = null;
  try {
    device = openSync('/dev/urandom', 'r');
    // A root file system made by hand may have a file of that name.
    if (!fstatSync(device).isCharacterDevice()) return false;
    const bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    for (let at = 0; at < bytes.length;) {
      const read = readSync(device, bytes, at, bytes.length - at, null);
      if (read === 0) return false;
      at += read;
    }
    return true;
  } catch {
    return false;
  } finally {
    if (device !== null) closeSync(device);
  }
}

/** A repeatable sequence (xorshift32), for tests and for shuffling where nobody gains by guessing. */
export function seededRandom(seed: number): Random {
  let state = seed | 0 || 0x9e3779b9;
  return {
    integer(below) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return (state >>> 0) % below;
    },
  };
}
