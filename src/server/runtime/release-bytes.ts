/**
 * Frees a buffer's memory now instead of at the next garbage collection. Memory outside the heap hardly triggers
 * collections, so under load tens of megabytes of it would pile up.
 *
 * The buffer must be the only user, or the last part, of its memory. That is the case for `Buffer.allocUnsafeSlow` and
 * for data from a socket without TLS. With TLS, the runtime decrypts all connections into the same memory. Afterwards,
 * every view of the memory is empty.
 */
export function releaseBytes(bytes: Buffer): void {
  const { buffer, byteOffset, byteLength } = bytes;
  if (buffer instanceof ArrayBuffer && byteOffset + byteLength === buffer.byteLength)
    buffer.transfer(0);
}
