import { builtins } from './builtins.ts';

/** Randomness as a parameter, so that tests can repeat a run. */
export interface Random {
  /** A uniformly drawn integer in [0, below); `below` from 1 to 2^32. */
  integer(below: number): number;
}

const pool = new Uint32Array(1024);
let used = pool.length;

/**
 * Numbers from the operating system's generator, fit for ids and ports that an attacker must not
 * guess.
 */
export const secureRandom: Random = {
  integer(below) {
    // Words at or above the last whole multiple of `below` are drawn again, because a remainder of
    // them would favour small values. 32-bit integers are used because their remainder is one
    // instruction.
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
 * Fills `words` from the operating system's random device. `node:crypto` draws from the same
 * source, but takes a MiB in each thread that loads it.
 * @returns false if this machine has no such device
 */
function fillFromDevice(words: Uint32Array): boolean {
  const { closeSync, fstatSync, openSync, readSync } = builtins.files();
  let device: number | null = null;
  try {
    device = openSync('/dev/urandom', 'r');
    // A root file system that was made by hand may have a regular file of that name.
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

/**
 * A repeatable sequence (xorshift32), for tests, and for shuffling where guessing the order gains
 * nothing.
 */
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
