/** Opens connections to upstreams, with TLS or without. */
import { connect as connectTcp, type Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { builtins } from '../../base/builtins.ts';
import { printHostPort } from '../../base/ip.ts';
import type { UpstreamParts } from '../upstream-address.ts';

const UNIX = 'unix:';

/** Returns TLS options for an upstream. Without a server name, the certificate must contain the IP address. */
export function tlsOptions({ address, tls }: UpstreamParts): ConnectionOptions {
  const { authority = null, certificate = null, key = null } = tls ?? {};
  return {
    minVersion: 'TLSv1.2',
    ...(address.serverName !== '' && { servername: address.serverName }),
    ...(authority !== null && { ca: authority }),
    ...(certificate !== null && { cert: certificate }),
    ...(key !== null && { key }),
  };
}

/** Connects to one upstream, and resumes its most recent TLS session. */
export class UpstreamConnector {
  /** Network and address, for errors: `tcp 10.0.0.1:443`. */
  readonly where: string;
  /** The socket event that signals success. */
  readonly event: 'connect' | 'secureConnect';
  readonly #parts: UpstreamParts;
  readonly #protocols: readonly string[] | null;
  #session: Buffer | null = null;

  /** @param protocols offered in the TLS handshake (ALPN); null to connect without TLS */
  constructor(parts: UpstreamParts, protocols: readonly string[] | null) {
    const { host, port } = parts.address;
    this.where = host.startsWith(UNIX)
      ? `unix ${host.slice(UNIX.length)}`
      : `tcp ${printHostPort(host, port)}`;
    this.event = protocols === null ? 'connect' : 'secureConnect';
    this.#parts = parts;
    this.#protocols = protocols;
  }

  connect(): Socket {
    const { address, source } = this.#parts;
    const { host, port } = address;
    const to = host.startsWith(UNIX)
      ? { path: host.slice(UNIX.length) }
      : { host, port, noDelay: true, ...(source !== '' && { localAddress: source }) };
    if (this.#protocols === null) return connectTcp(to);
    const socket = builtins.tls().connect({
      ...to,
      ...tlsOptions(this.#parts),
      ...(this.#session !== null && { session: this.#session }),
      ...(this.#protocols.length > 0 && { ALPNProtocols: [...this.#protocols] }),
    });
    socket.on('session', (ticket) => {
      this.#session = ticket;
    });
    return socket;
  }
}
