/**
 * Returns true if the address means all addresses of both families, as each of these does in Go and thus in CoreDNS.
 */
export function isWildcard(address: string): boolean {
  return address === '' || address === '0.0.0.0' || address === '::';
}

/** Returns the addresses to bind, one per socket, because our IPv6 sockets never accept IPv4. */
export function concreteAddresses(address: string): readonly string[] {
  return isWildcard(address) ? ['0.0.0.0', '::'] : [address];
}
