/** Memory shared by all threads of the process. */

/** Allocates zeroed bytes readable by all threads. */
export function sharedBytes(length: number): Uint8Array<SharedArrayBuffer> {
  return new Uint8Array(new SharedArrayBuffer(length));
}

/** Allocates zeroed 32-bit words readable by all threads. */
export function sharedWords(length: number): Uint32Array<SharedArrayBuffer> {
  return new Uint32Array(new SharedArrayBuffer(4 * length));
}
