/**
 * Models in virtual time how IPVS handles clients of UDP services. A connection lasts until `udpSeconds` after its last
 * packet, even if its server is gone, and matches any client that reuses the source port.
 */

export interface IpvsSettings {
  /** `ipvsadm --set … UDP`: 300 s by default. */
  readonly udpSeconds: number;
  /**
   * `net.ipv4.vs.expire_nodest_conn`: a packet for a server that is gone deletes the connection, but is itself lost.
   */
  readonly expireNoDestination: boolean;
}

/** The kernel's defaults. */
export const defaultIpvs: IpvsSettings = { udpSeconds: 300, expireNoDestination: false };

export type PacketDelivery = { readonly server: string } | 'lost';

/** One virtual server's connections. Times are milliseconds on the caller's clock. */
export class IpvsService {
  readonly #settings: IpvsSettings;
  readonly #servers: string[];
  readonly #connections = new Map<number, { readonly server: string; endsMs: number }>();
  #next = 0;

  constructor(settings: IpvsSettings, servers: readonly string[]) {
    this.#settings = settings;
    this.#servers = [...servers];
  }

  /** Stops sending new connections to the server. */
  remove(server: string): void {
    const at = this.#servers.indexOf(server);
    if (at >= 0) this.#servers.splice(at, 1);
  }

  /** Handles one packet from a client's source port. */
  packet(port: number, nowMs: number): PacketDelivery {
    const known = this.#connections.get(port);
    if (known !== undefined && known.endsMs > nowMs) {
      if (this.#servers.includes(known.server)) {
        known.endsMs = nowMs + this.#settings.udpSeconds * 1000;
        return { server: known.server };
      }
      // A dropped packet does not prolong the connection.
      if (this.#settings.expireNoDestination) this.#connections.delete(port);
      return 'lost';
    }
    const server = this.#servers[this.#next++ % this.#servers.length];
    if (server === undefined) return 'lost';
    this.#connections.set(port, { server, endsMs: nowMs + this.#settings.udpSeconds * 1000 });
    return { server };
  }
}
