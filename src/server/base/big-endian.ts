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

/** Reads all 16-bit numbers in `bytes`, whose length is even. */
export function uint16sIn(bytes: Uint8Array): number[] {
  return Array.from({ length: bytes.length >> 1 }, (_, index) => readUint16(bytes, 2 * index));
}

/** Encodes consecutive 16-bit numbers. */
export function uint16Bytes(numbers: readonly number[]): Uint8Array {
  return Uint8Array.from(numbers.flatMap((number) => [number >> 8, number & 0xff]));
}
