import { builtins } from './builtins.ts';

/** Randomness as a parameter, so that tests can repeat a run. */
export interface Random {
  /** Draws a uniform integer in [0, below), where `below` is 1 to 2^32. */
  integer(below: number): number;
}

const pool = new Uint32Array(1024);
let used = pool.length;

/** Uses the operating system's generator. Suitable for ids and ports that an attacker must not guess. */
export const secureRandom: Random = {
  integer(below) {
    // Redraw words at or above the last whole multiple of `below`, because their remainders would favour small values.
    // With 32-bit integers, computing the remainder is a single instruction.
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
 * Fills `words` from the operating system's random device. `node:crypto` uses the same source, but costs a MiB in each
 * thread that loads it.
 * @returns false if this machine has no such device
 */
function fillFromDevice(words: Uint32Array): boolean {
  const { closeSync, fstatSync, openSync, readSync } = builtins.files();
  let device: number | null = null;
  try {
    device = openSync('/dev/urandom', 'r');
    // A hand-built root file system may contain a regular file there.
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

/** A repeatable sequence (xorshift32), for tests and for shuffling where predictability is harmless. */
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
