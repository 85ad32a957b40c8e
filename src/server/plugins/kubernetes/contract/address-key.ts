import { readUint32 } from '../../../base/big-endian.ts';

/** Copies the 4 or 16 address bytes at `at` into `key` as one or four 32-bit words, and returns `key`. */
export function addressKey(
  bytes: Uint8Array,
  at: number,
  length: number,
  key: Int32Array,
): Int32Array {
  for (let word = 0; word < length >> 2; word++, at += 4) key[word] = readUint32(bytes, at);
  return key;
}
