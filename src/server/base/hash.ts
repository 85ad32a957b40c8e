/**
 * Keyed hash for all tables whose keys come from clients: HalfSipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012; Linux uses it for the same purpose). Without the key, an attacker cannot construct names that
 * share a bucket, however many replies are timed. FNV and similar hashes lack this property: a random start value does
 * not hide which names collide.
 *
 * ```ts
 * const slot = hashBytes(key, 0, key.length) & mask;
 * ```
 *
 * There is one key per process, because threads share tables (zones, hosts).
 */
import type { Random } from './random.ts';

/** Two 32-bit words. */
export type HashKey = readonly [number, number];

// Initial state. It is the same in every run until a key is drawn.
let start0 = 0;
let start1 = 0;
let start2 = 0;
let start3 = 0;
let key: HashKey = [0, 0];
useHashKey([0x2b7e1516, 0x28aed2a6]);

/** Sets this thread's key to the one drawn by another thread of the process. */
export function useHashKey(given: HashKey): void {
  key = given;
  start0 = key[0] | 0;
  start1 = key[1] | 0;
  start2 = 0x6c796765 ^ key[0];
  start3 = 0x74656462 ^ key[1];
}

/**
 * Draws the process's key. Call this before creating any table, because entries hashed with another key cannot be
 * found.
 */
export function drawHashKey(random: Random): void {
  useHashKey([random.integer(2 ** 32), random.integer(2 ** 32)]);
}

/** This thread's key, to be passed to threads that share its tables. */
export function hashKey(): HashKey {
  return key;
}

// The rounds are unrolled in both functions because every query runs them.
/**
 * Hashes `bytes[at, end)` to a signed 32-bit integer.
 * @param before a number that is also part of the key, or 0
 */
export function hashBytes(bytes: Uint8Array, at: number, end: number, before = 0): number {
  let v0 = start0;
  let v1 = start1;
  let v2 = start2;
  let v3 = start3;
  let word = before;
  let tail = (end - at) << 24;
  const whole = at + ((end - at) & ~3);
  // A leading number adds one word. Otherwise the first word comes from the bytes.
  let more = before !== 0;
  for (;;) {
    if (!more) {
      if (at >= whole) break;
      word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      at += 4;
    }
    more = false;
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  for (let shift = 0; at < end; shift += 8) tail |= bytes[at++]! << shift;
  return finished(v0, v1, v2, v3, tail);
}

/**
 * Hashes `bytes[at, at + length)` as `hashBytes` does, after mapping each byte through `map` (256 bytes). Also writes
 * the mapped bytes to `to`, so that a name is folded and hashed in one pass.
 */
export function hashMapped(
  bytes: Uint8Array,
  at: number,
  length: number,
  map: Uint8Array,
  to: Uint8Array,
): number {
  let v0 = start0;
  let v1 = start1;
  let v2 = start2;
  let v3 = start3;
  let i = 0;
  for (const whole = length & ~3; i < whole; i += 4, at += 4) {
    const byte0 = map[bytes[at]!]!;
    const byte1 = map[bytes[at + 1]!]!;
    const byte2 = map[bytes[at + 2]!]!;
    const byte3 = map[bytes[at + 3]!]!;
    to[i] = byte0;
    to[i + 1] = byte1;
    to[i + 2] = byte2;
    to[i + 3] = byte3;
    const word = byte0 | (byte1 << 8) | (byte2 << 16) | (byte3 << 24);
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  let tail = length << 24;
  for (let shift = 0; i < length; i++, shift += 8) {
    const byte = map[bytes[at++]!]!;
    to[i] = byte;
    tail |= byte << shift;
  }
  return finished(v0, v1, v2, v3, tail);
}

/** Hashes two 32-bit numbers. */
export function hashPair(first: number, second: number): number {
  pair[0] = first;
  pair[1] = first >>> 8;
  pair[2] = first >>> 16;
  pair[3] = first >>> 24;
  pair[4] = second;
  pair[5] = second >>> 8;
  pair[6] = second >>> 16;
  pair[7] = second >>> 24;
  return hashBytes(pair, 0, 8);
}

const pair = new Uint8Array(8);

/** Absorbs the last word and runs the three final rounds. */
function finished(v0: number, v1: number, v2: number, v3: number, tail: number): number {
  v3 ^= tail;
  for (let round = 0; round < 4; round++) {
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    if (round > 0) continue;
    v0 ^= tail;
    v2 ^= 0xff;
  }
  return v1 ^ v3;
}
