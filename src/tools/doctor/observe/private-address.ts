/** Addresses of private networks. */

const PRIVATE =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|f[cd])/;

/** True for private networks (RFC 1918, RFC 6598, RFC 4193). */
export function isPrivate(address: string): boolean {
  return PRIVATE.test(address);
}
