/** Copies `from[at, at + size)` to `to[toAt, …)`. For a few bytes, a loop is faster than `set`, which needs a view. */
export function copyBytes(
  from: Uint8Array,
  at: number,
  to: Uint8Array,
  toAt: number,
  size: number,
): void {
  if (size > 256) to.set(from.subarray(at, at + size), toAt);
  else for (let i = 0; i < size; i++) to[toAt + i] = from[at + i]!;
}

/** Returns a string whose characters are the bytes, as a key for maps and sets. */
export function bytesKey(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** Copies the bytes `[start, end)`. This is safe for a Buffer, whose `slice` would return a view. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.subarray(start, end));
}

/** Copies `from` into `to`, and returns it. */
export function larger<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** True if the bytes at `at` equal `part[0, length)`. */
export function holdsAt(
  bytes: Uint8Array,
  at: number,
  part: Uint8Array,
  length: number = part.length,
): boolean {
  for (let i = 0; i < length; i++) if (bytes[at + i] !== part[i]) return false;
  return true;
}
