/**
 * Frees the memory of bytes that nobody needs any more, now rather than when garbage is collected: bytes outside the heap press
 * the collector little, and tens of megabytes of them pile up under load. They have to have memory of their own, such as what
 * `Buffer.allocUnsafeSlow` has made or a socket without TLS has read, or be the last part of it; every view of it is empty
 * afterwards. What comes over TLS has not: the runtime decrypts all connections into the same memory.
 */
export function releaseBytes(bytes: Buffer): void {
  const { buffer, byteOffset, byteLength } = bytes;
  if (buffer instanceof ArrayBuffer && byteOffset + byteLength === buffer.byteLength)
    buffer.transfer(0);
}
