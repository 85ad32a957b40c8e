/** Hashes node and zone names to six bytes, which are enough to compare them. */
import { hashBytes } from '../../../base/hash.ts';

/** 48 bits. With 5 000 nodes, two of them collide in one out of 22 million clusters. */
export const PLACE_BYTES = 6;

/** Returns the hash as a byte string, or `''` for an empty name. All threads get the same result. */
export function placeHash(name: string): string {
  if (name === '') return '';
  const bytes = Buffer.from(name);
  const low = hashBytes(bytes, 0, bytes.length, 1);
  const high = hashBytes(bytes, 0, bytes.length, 2);
  const words = [low, low >>> 8, low >>> 16, low >>> 24, high, high >>> 8];
  return String.fromCharCode(...words.map((word) => word & 0xff));
}
