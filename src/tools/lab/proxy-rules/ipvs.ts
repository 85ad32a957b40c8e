/**
 * What IPVS does with clients of UDP services, in virtual time: a connection stays for `udpSeconds`
 * after its last packet, also when its server is gone, and a client that takes the same source port
 * again meets it.
 */

/** How IPVS is set up. */
export interface IpvsSettings {
  /** `ipvsadm --set … UDP`: 300 s as the kernel has it. */
  readonly udpSeconds: number;
  /**
   * `net.ipv4.vs.expire_nodest_conn`: a packet for a server that is gone ends its connection, which
   * then is lost itself.
   */
  readonly expireNoDestination: boolean;
}

/** As the kernel has it. */
export const defaultIpvs: IpvsSettings = { udpSeconds: 300, expireNoDestination: false };

/** The fate of a packet: it reaches a server, or is lost. */
export type PacketDelivery = { readonly server: string } | 'lost';

/** Connections of one virtual server. Times are milliseconds of the caller's clock. */
export class IpvsService {
  readonly #settings: IpvsSettings;
  readonly #servers: string[];
  readonly #connections = new Map<number, { readonly server: string; endsMs: number }>();
  #next = 0;

  constructor(settings: IpvsSettings, servers: readonly string[]) {
    this.#settings = settings;
    this.#servers = [...servers];
  }

  /** The server is gone: new connections do not go there. */
  remove(server: string): void {
    const at = this.#servers.indexOf(server);
    if (at >= 0) this.#servers.splice(at, 1);
  }

  /** One packet of a client's source port. */
  packet(port: number, nowMs: number): PacketDelivery {
    const known = this.#connections.get(port);
    if (known !== undefined && known.endsMs > nowMs) {
      if (this.#servers.includes(known.server)) {
        known.endsMs = nowMs + this.#settings.udpSeconds * 1000;
        return { server: known.server };
      }
      // A packet that is dropped does not lengthen the connection.
      if (this.#settings.expireNoDestination) this.#connections.delete(port);
      return 'lost';
    }
    const server = this.#servers[this.#next++ % this.#servers.length];
    if (server === undefined) return 'lost';
    this.#connections.set(port, { server, endsMs: nowMs + this.#settings.udpSeconds * 1000 });
    return { server };
  }
}
