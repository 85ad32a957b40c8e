/**
 * The transports that DNS messages travel by: how addresses name them, the port where they are expected, what is bound there
 * and whether it is encrypted. `net/transports.ts` says which of them are served, and by what.
 */
export interface Transport {
  /** Unless an address names another. */
  readonly port: number;
  /** What is bound at the port. */
  readonly sockets: readonly SocketKind[];
  /** Whether a certificate is part of it; `optional`: without one it is plain, for a proxy that ends TLS. */
  readonly tls: 'never' | 'optional' | 'always';
}

/** What can be bound at a port. */
export type SocketKind = 'udp' | 'tcp';

/** By what one message travels, between whomever; dnstap calls it so, too. */
export type Protocol = SocketKind | 'tls' | 'https' | 'grpc';

/** What stands before `://`. */
export type Scheme = 'dns' | 'tls' | 'https' | 'grpc' | 'quic' | 'https3';

/** All of them, those included that are not served. */
export const transports: Readonly<Record<Scheme, Transport>> = {
  /** RFC 1035, RFC 7766. */
  dns: { port: 53, sockets: ['udp', 'tcp'], tls: 'never' },
  /** RFC 7858. */
  tls: { port: 853, sockets: ['tcp'], tls: 'always' },
  /** RFC 8484 over HTTP/2 or HTTP/1.1. */
  https: { port: 443, sockets: ['tcp'], tls: 'optional' },
  /** CoreDNS's `coredns.dns.DnsService`. */
  grpc: { port: 443, sockets: ['tcp'], tls: 'optional' },
  /** RFC 9250. */
  quic: { port: 853, sockets: ['udp'], tls: 'always' },
  /** RFC 8484 over HTTP/3. */
  https3: { port: 443, sockets: ['udp'], tls: 'always' },
};
