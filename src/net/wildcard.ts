/** Whether the address stands for all addresses of both families. In Go, and so in CoreDNS, each of these does. */
export function isWildcard(address: string): boolean {
  return address === '' || address === '0.0.0.0' || address === '::';
}

/** The addresses to bind to, one per socket: IPv6 sockets here never take IPv4. */
export function concreteAddresses(address: string): readonly string[] {
  return isWildcard(address) ? ['0.0.0.0', '::'] : [address];
}
