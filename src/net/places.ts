/** What a scheme's packets travel in. */
export type Proto = 'udp' | 'tcp';

/** Whether the address stands for all addresses of both families; `::` does too, as in CoreDNS. */
export function isWildcard(address: string): boolean {
  return address === '' || address === '::';
}

/** The addresses to bind to, one per socket: IPv6 sockets here never take IPv4. */
export function concreteAddresses(address: string): string[] {
  return isWildcard(address) ? ['0.0.0.0', '::'] : [address];
}
