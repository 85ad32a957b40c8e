/**
 * True if the address stands for all addresses of both families, as each of these does in Go and so
 * in CoreDNS.
 */
export function isWildcard(address: string): boolean {
  return address === '' || address === '0.0.0.0' || address === '::';
}

/** The addresses to bind, one per socket: our IPv6 sockets never take IPv4. */
export function concreteAddresses(address: string): readonly string[] {
  return isWildcard(address) ? ['0.0.0.0', '::'] : [address];
}
