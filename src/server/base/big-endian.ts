/** Numbers in network byte order. */

/** Reads an unsigned 32-bit number at `at`. The caller checks that all four bytes exist. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
  );
}

/** Reads an unsigned 16-bit number at `at`. The caller checks that both bytes exist. */
export function readUint16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}
