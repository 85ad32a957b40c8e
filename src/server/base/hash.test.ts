import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { hashBytes, hashKey, hashMapped, hashPair, useHashKey } from './hash.ts';

const ofRun = hashKey();
afterEach(() => useHashKey(ofRun));

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i);

/** Reference implementation of HalfSipHash-1-3 with bigints, written from the paper. */
function halfSipHash13(data: Uint8Array, k0: bigint, k1: bigint): number {
  const mask = 0xffff_ffffn;
  const v = [k0, k1, 0x6c796765n ^ k0, 0x74656462n ^ k1] as [bigint, bigint, bigint, bigint];
  const rotated = (word: bigint, by: bigint): bigint =>
    ((word << by) | (word >> (32n - by))) & mask;
  const round = (): void => {
    v[0] = (v[0] + v[1]) & mask;
    v[1] = rotated(v[1], 5n) ^ v[0];
    v[0] = rotated(v[0], 16n);
    v[2] = (v[2] + v[3]) & mask;
    v[3] = rotated(v[3], 8n) ^ v[2];
    v[0] = (v[0] + v[3]) & mask;
    v[3] = rotated(v[3], 7n) ^ v[0];
    v[2] = (v[2] + v[1]) & mask;
    v[1] = rotated(v[1], 13n) ^ v[2];
    v[2] = rotated(v[2], 16n);
  };
  const padded = new Uint8Array((data.length & ~3) + 4);
  padded.set(data);
  padded[padded.length - 1] = data.length & 0xff;
  const view = new DataView(padded.buffer);
  for (let at = 0; at < padded.length; at += 4) {
    const word = BigInt(view.getUint32(at, true));
    v[3] ^= word;
    round();
    v[0] ^= word;
  }
  v[2] ^= 0xffn;
  for (let i = 0; i < 3; i++) round();
  return Number(BigInt.asIntN(32, v[1] ^ v[3]));
}

test('hashes match HalfSipHash-1-3 for every length', () => {
  for (const [k0, k1] of [
    [0x03020100, 0x07060504],
    [0xffffffff, 0x80000000],
    [0, 0],
  ] as const) {
    useHashKey([k0, k1]);
    for (let length = 0; length < 300; length++) {
      const data = bytes(length);
      const expected = halfSipHash13(data, BigInt(k0), BigInt(k1));
      assert.equal(hashBytes(data, 0, length), expected);
      const to = new Uint8Array(length);
      const same = Uint8Array.from({ length: 256 }, (_, i) => i);
      assert.equal(hashMapped(data, 0, length, same, to), expected);
      assert.deepEqual(to, data);
    }
  }
});

test('a number before the bytes counts as four of them', () => {
  useHashKey([1, 2]);
  const all = Uint8Array.of(4, 3, 2, 1, 9, 9, 9, 9, 0, 0, 0, 6);
  all[11] = 4;
  assert.notEqual(hashBytes(all, 4, 8, 0x01020304), hashBytes(all, 4, 8));
  assert.notEqual(hashBytes(all, 4, 8, 1), hashBytes(all, 4, 8, 2));
  assert.notEqual(hashPair(1, 2), hashPair(2, 1));
});

/**
 * Returns 2^12 byte strings that collide under FNV-1a for any start value with the low byte `low` (Joux's
 * construction). FNV's XOR affects only that byte, so 256 such sets cover every seed.
 */
function colliding(low: number): Uint8Array[] {
  let state = low;
  const blocks: (readonly [Uint8Array, Uint8Array])[] = [];
  let tried = 0;
  while (blocks.length < 12) {
    const seen = new Map<number, Uint8Array>();
    for (let pair: readonly [Uint8Array, Uint8Array] | null = null; pair === null; tried++) {
      const letters = lettersOf(tried);
      const next = fnv(letters, state);
      const other = seen.get(next);
      if (other === undefined) seen.set(next, letters);
      else {
        pair = [other, letters];
        blocks.push(pair);
        state = next;
      }
    }
  }
  return Array.from({ length: 4096 }, (_, number) =>
    Uint8Array.from(blocks.flatMap((pair, at) => [...pair[(number >> at) & 1]!])),
  );
}

/** Returns five bytes, different for each number. */
function lettersOf(number: number): Uint8Array {
  const mixed = Math.imul(number, 0x9e3779b1) >>> 0;
  return Uint8Array.of(
    mixed & 255,
    (mixed >> 8) & 255,
    (mixed >> 16) & 255,
    mixed >>> 24,
    number & 7,
  );
}

function fnv(data: Uint8Array, state: number): number {
  for (const byte of data) state = Math.imul(state ^ byte, 0x01000193);
  return state;
}

test('names that collide in FNV-1a for any start value are spread like random ones', () => {
  for (const low of [0, 77, 255]) {
    const names = colliding(low);
    for (const high of [0, 0x12345600, -256])
      assert.equal(new Set(names.map((name) => fnv(name, high | low))).size, 1);
    for (const key of [
      [0, 0],
      [0x811c9dc5, 0],
      [0xdeadbeef, 0x01234567],
    ] as const) {
      useHashKey(key);
      const chains = new Int32Array(4096);
      for (const name of names) chains[hashBytes(name, 0, name.length) & 4095]!++;
      // With 4096 random values in as many buckets, the fullest contains 6 or 7. More than 12 cannot be chance.
      assert.ok(Math.max(...chains) <= 12, `${Math.max(...chains)} of 4096 names share a place`);
    }
  }
});
