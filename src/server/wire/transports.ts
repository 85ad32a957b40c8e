/**
 * The DNS transports, with their names in addresses, default ports, sockets and encryption. Their listeners are in
 * `transport/transports.ts`.
 */
export interface Transport {
  readonly port: number;
  /** The kinds of sockets bound to the port. */
  readonly sockets: readonly SocketKind[];
  /**
   * The transport's encryption. `optional` means unencrypted if there is no certificate, for use behind a proxy that
   * terminates TLS.
   */
  readonly tls: 'never' | 'optional' | 'always';
}

/** Kinds of sockets that can be bound to a port. */
export type SocketKind = 'udp' | 'tcp';

/** The transport that delivers a message, with the same values as in dnstap. */
export type Protocol = SocketKind | 'tls' | 'https' | 'grpc';

/** The word before `://` in a server block's key or an upstream address. */
export type Scheme = 'dns' | 'tls' | 'https' | 'grpc' | 'quic' | 'https3';

/** All transports, including those that ndots recognizes but does not serve. */
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
