/**
 * Names of servers: the address alone if it has one server, and address and port if it has several.
 * An example is the loopback of a pod with dnsmasq beside CoreDNS, which query each other.
 */
import { netHolds, parseAddress, parseNet, printHostPort } from '../../../server/base/ip.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { usualPorts } from '../../capture/read/reading.ts';
import type { SeenExchange, ServerPeer } from '../../capture/pair/seen-exchange.ts';
import { BoundedMap } from './bounded-map.ts';

const HOSTS_MAX = 2000;
/** Ports of one address that get names of their own. */
const PORTS_MAX = 20;

const loopback = ['127.0.0.0/8', '::1/128'].map((text) => parseNet(text)!);

/** One address, and who serves at it. */
interface Host {
  /** The port whose server is called by the address alone; 0: none is. */
  readonly plain: number;
  readonly servers: Map<number, Peer>;
}

/** Names of servers, in the order in which they are met. */
export class ServerNames {
  readonly #hosts: BoundedMap<string, Host> = new BoundedMap(HOSTS_MAX);
  /** By name, of those that have the port in it. */
  readonly #hostOf = new Map<string, string>();

  /** Calls the servers of an exchange by their names. Done twice, it changes nothing. */
  give(exchange: SeenExchange): void {
    const server = this.#named(exchange.server);
    if (server !== exchange.server) exchange.server = server;
    const { hops } = exchange;
    if (hops.some((hop) => this.#named(hop.server) !== hop.server))
      exchange.hops = hops.map((hop) => ({ ...hop, server: this.#named(hop.server) }));
  }

  /** True if a server has this address, at any port. */
  has(address: string): boolean {
    return this.#hosts.get(address) !== undefined;
  }

  /** True if several servers have the address: the sender of a query from it is unknown. */
  isShared(address: string): boolean {
    return (this.#hosts.get(address)?.servers.size ?? 0) > 1;
  }

  /** The address that a server of this name is at. */
  hostOf(name: string): string {
    return this.#hostOf.get(name) ?? name;
  }

  /** True if the server of this name is queried over IPv6. */
  isIpv6(name: string): boolean {
    return this.hostOf(name).includes(':');
  }

  /** The server at an address that is the only one there; null: none is, or several are. */
  only(address: string): string | null {
    const servers = this.#hosts.get(address)?.servers;
    if (servers?.size !== 1) return null;
    const [[, server]] = [...servers] as [[number, Peer]];
    return server.address;
  }

  #named(server: ServerPeer): ServerPeer {
    const { address, port, host } = server;
    if (address === '') return server;
    const at = host ?? address;
    const entry = this.#hosts.get(at) ?? this.#hosts.at(at, () => hostOf(at, port));
    if (entry === null) return server;
    const known = entry.servers.get(port);
    // Another look at the same has named it.
    const named =
      known ??
      (host !== undefined || port === entry.plain
        ? server
        : { address: printHostPort(address, port), port, host: address });
    if (known === undefined) {
      if (entry.servers.size >= PORTS_MAX) return server;
      entry.servers.set(port, named);
      if (named.address !== at) this.#hostOf.set(named.address, at);
    }
    return named.address === address ? server : named;
  }
}

/** On the loopback of a machine several may serve: only DNS's own ports need not be said. */
function hostOf(address: string, port: number): Host {
  const bytes = parseAddress(address);
  const isLoopback = bytes !== null && loopback.some((net) => netHolds(net, bytes));
  return { plain: isLoopback && !usualPorts.includes(port) ? 0 : port, servers: new Map() };
}
