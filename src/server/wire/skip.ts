/** Returns the end of the record at `at`. */
export function skipRecord(bytes: Uint8Array, at: number, end: number): number {
  at = skipName(bytes, at, end) + 8;
  return at + 2 + ((bytes[at]! << 8) | bytes[at + 1]!);
}

/** Returns the end of the possibly compressed name at `at`. */
export function skipName(bytes: Uint8Array, at: number, end: number): number {
  while (at < end) {
    const size = bytes[at]!;
    if (size >= 0xc0) return at + 2;
    at += size + 1;
    if (size === 0) return at;
  }
  return end;
}

/** Returns the end of the possibly compressed name at `at`, in place. The name must have been checked. */
export function endOfName(bytes: Uint8Array, at: number): number {
  for (;;) {
    const size = bytes[at]!;
    if (size === 0) return at + 1;
    if (size >= 0xc0) return at + 2;
    at += size + 1;
  }
}
