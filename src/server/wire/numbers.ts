/** Reads and writes 16-bit numbers in network byte order. */

/** Reads the number at `at`. */
export function u16At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!;
}

/** Reads all numbers in `bytes`, whose length is even. */
export function u16sIn(bytes: Uint8Array): number[] {
  return Array.from({ length: bytes.length >> 1 }, (_, index) => u16At(bytes, 2 * index));
}

/** Encodes consecutive numbers. */
export function u16Bytes(numbers: readonly number[]): Uint8Array {
  return Uint8Array.from(numbers.flatMap((number) => [number >> 8, number & 0xff]));
}
