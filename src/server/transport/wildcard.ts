/**
 * Returns true if the address stands for all addresses of both families. Each of these does so in Go and thus in
 * CoreDNS.
 */
export function isWildcard(address: string): boolean {
  return address === '' || address === '0.0.0.0' || address === '::';
}

/** Returns the addresses to bind, one per socket, because our IPv6 sockets never accept IPv4 traffic. */
export function concreteAddresses(address: string): readonly string[] {
  return isWildcard(address) ? ['0.0.0.0', '::'] : [address];
}
