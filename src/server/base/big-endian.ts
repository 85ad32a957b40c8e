/** Numbers in network byte order. */

/** The number of four bytes at `at`, 0 to 2^32 - 1. The bytes must be there. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
  );
}
