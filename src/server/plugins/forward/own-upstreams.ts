/** Finds upstreams that lead back to the server block that forwards to them. */
import { isLoopback, parseAddress, printAddress, splitHostPort } from '../../base/ip.ts';
import { machineAddresses } from '../../base/machine-addresses.ts';
import { splitScheme } from '../../corefile/zones.ts';
import type { ForwardUpstreamSpec } from './address.ts';

/**
 * Returns the upstreams that are this block's own listeners, if the transport is the same.
 * @param servers listen addresses, e.g. `dns://10.0.0.10:53`, `dns://:53`
 */
export function ownUpstreams(
  upstreams: readonly ForwardUpstreamSpec[],
  servers: readonly string[],
  own: () => Uint8Array[] = machineAddresses,
): readonly ForwardUpstreamSpec[] {
  const listened = servers.flatMap((server) => {
    const { scheme, rest } = splitScheme(server);
    const { host = '', port = null } = splitHostPort(rest) ?? {};
    return port === null || port === 0 ? [] : [{ scheme, port, address: parseAddress(host) }];
  });
  let machine: ReadonlySet<string> | null = null;
  return upstreams.filter(({ scheme, host, port }) => {
    const ip = parseAddress(host.replace(/%.*/s, ''));
    if (ip === null) return false;
    return listened.some((one) => {
      if (one.scheme !== scheme || one.port !== port) return false;
      const { address } = one;
      if (address !== null && address.some((byte) => byte !== 0))
        return Buffer.compare(address, ip) === 0;
      // 0.0.0.0 does not accept IPv6.
      if (address?.length === 4 && ip.length === 16) return false;
      machine ??= new Set(own().map((address) => printAddress(address)));
      return isLoopback(ip) || machine.has(printAddress(ip));
    });
  });
}
