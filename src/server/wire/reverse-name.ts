/** Reverse names, which represent addresses, in in-addr.arpa and ip6.arpa. */

/**
 * Returns the absolute name in in-addr.arpa or ip6.arpa (RFC 1035 section 3.5, RFC 3596 section 2.5).
 * @param bytes 4 or 16 bytes
 */
export function nameOfAddress(bytes: Uint8Array): string {
  if (bytes.length === 4) return `${[...bytes].reverse().join('.')}.in-addr.arpa.`;
  const nibbles = [...bytes].flatMap((byte) => [byte >> 4, byte & 15]);
  return `${nibbles
    .reverse()
    .map((nibble) => nibble.toString(16))
    .join('.')}.ip6.arpa.`;
}
