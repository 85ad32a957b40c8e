/**
 * nss-myhostname (systemd) resolves names without a server: `localhost`, names below it, and the machine's
 * own name. `_gateway` and `_outbound`, which need the routing table, are not modelled. Before `dns` in
 * nsswitch.conf it answers first; after it, only if DNS failed.
 */
import { parseAddress } from '../../server/base/ip.ts';
import type { AddressFamily, Host } from './client.ts';

/** Names that always mean the machine itself (RFC 6761, section 6.3, and systemd's additions). */
export function isLocalhostName(name: string): boolean {
  const bare = name.toLowerCase().replace(/\.$/, '');
  return (
    bare === 'localhost' ||
    bare === 'localhost.localdomain' ||
    bare.endsWith('.localhost') ||
    bare.endsWith('.localhost.localdomain')
  );
}

/** Null: nss-myhostname does not handle the name. */
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
  // For its own name on a machine without addresses systemd answers 127.0.0.2 and ::1.
  return host.loopback
    .filter((family) => families.includes(family))
    .map((family) => (family === 4 ? '127.0.0.2' : '::1'));
}

/** The address as programs print it: without the interface after `%`. */
export function withoutZone(address: string): string {
  return address.replace(/%.*/s, '');
}

/** The address may include an interface. */
export function familyOf(address: string): AddressFamily {
  return parseAddress(withoutZone(address))?.length === 4 ? 4 : 6;
}
