/**
 * nss-myhostname (systemd) resolves some names without a server: `localhost`, names under it, and the machine's own
 * name. `_gateway` and `_outbound` need the routing table and are not modelled. If it comes before `dns` in
 * nsswitch.conf, it answers first, and otherwise only if DNS has failed.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { AddressFamily, Host } from './client.ts';

/** True for names that always refer to the machine itself (RFC 6761, section 6.3, and systemd's additions). */
export function isLocalhostName(name: string): boolean {
  const bare = name.toLowerCase().replace(/\.$/, '');
  return (
    bare === 'localhost' ||
    bare === 'localhost.localdomain' ||
    bare.endsWith('.localhost') ||
    bare.endsWith('.localhost.localdomain')
  );
}

/** Returns null if nss-myhostname does not handle the name. */
export function myHostname(
  name: string,
  host: Host,
  families: readonly AddressFamily[],
): string[] | null {
  if (isLocalhostName(name)) {
    return host.loopback
      .filter((family) => families.includes(family))
      .map((family) => (family === 4 ? '127.0.0.1' : '::1'));
  }
  const bare = name.toLowerCase().replace(/\.$/, '');
  if (bare !== host.hostname.toLowerCase()) return null;
  const own = host.addresses.filter((address) => families.includes(familyOf(address)));
  if (own.length > 0) return own;
  // If the machine has no addresses, systemd answers 127.0.0.2 and ::1 for its own name.
  return host.loopback
    .filter((family) => families.includes(family))
    .map((family) => (family === 4 ? '127.0.0.2' : '::1'));
}

/** The address as programs print it, without the interface after `%`. */
export function withoutZone(address: string): string {
  return address.replace(/%.*/s, '');
}

export function familyOf(address: string): AddressFamily {
  return parseAddress(withoutZone(address))?.length === 4 ? 4 : 6;
}
