/** Determines this server's own addresses. */
import { isLoopback, parseAddress } from '../../../base/ip.ts';
import { machineAddresses } from '../../../base/machine-addresses.ts';

/**
 * Returns the addresses that this server answers on, except loopback. These are the ones it is bound to, or all of the
 * machine's. They are used for `ns.dns` if no service leads to this server.
 * @param servers listen addresses, e.g. `dns://10.0.0.10:53`, `dns://:53`
 */
export function ownAddresses(servers: readonly string[]): Uint8Array[] {
  const bound = boundAddresses(servers);
  const all = bound.length > 0 ? bound : machineAddresses();
  return all.filter((address) => !isLoopback(address));
}

/**
 * Returns the addresses that the server listens on, including loopback, or an empty list if it listens on all of them.
 */
export function boundAddresses(servers: readonly string[]): Uint8Array[] {
  return servers
    .map((server) => server.replace(/^[a-z0-9]+:\/\//, '').replace(/:\d+$/, ''))
    .map((host) => parseAddress(host.replace(/^\[(.*)\]$/, '$1')))
    .filter((address) => address !== null);
}
