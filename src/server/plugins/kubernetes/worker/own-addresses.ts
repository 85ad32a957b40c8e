/** Determines this server's own addresses. */
import { networkInterfaces } from 'node:os';
import { isLoopback, parseAddress } from '../../../base/ip.ts';

/**
 * Returns the addresses that this server answers on, except loopback. These are the ones it is bound to, or all of the
 * machine's. They are used for `ns.dns` if no service leads to this server.
 * @param servers listen addresses, e.g. `dns://10.0.0.10:53`, `dns://:53`
 */
export function ownAddresses(
  servers: readonly string[],
  interfaces: () => ReturnType<typeof networkInterfaces> = networkInterfaces,
): Uint8Array[] {
  const bound = boundAddresses(servers);
  const all = bound.length > 0 ? bound : machineAddresses(interfaces);
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

function machineAddresses(interfaces: () => ReturnType<typeof networkInterfaces>): Uint8Array[] {
  let found: ReturnType<typeof networkInterfaces>;
  try {
    found = interfaces();
  } catch {
    // Without permission to list interfaces, no addresses are known.
    return [];
  }
  return Object.values(found)
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => parseAddress(address))
    .filter((address) => address !== null);
}
