/** Servers on the internet, which cannot be DNS pods of a cluster. */
import { netHolds, parseAddress, parseNet } from '../../../server/base/ip.ts';
import { OWN_NETWORK_BITS } from '../thresholds/answers.ts';
import type { Observations } from './observations.ts';
import { isPrivate } from './private-address.ts';
import { isLinkLocal } from './roles.ts';
import { specialUse } from './special-address.ts';

/** Cloud providers run resolvers in this prefix, such as 169.254.169.253, which are not node caches. */
const OF_CLOUD = parseNet('169.254.169.0/24')!;

/** True for a cloud provider’s resolver on a link-local address. */
export function isCloudResolver(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && netHolds(OF_CLOUD, bytes);
}

/**
 * True for a public address whose network no client in the capture is in: some clusters give their
 * pods public addresses.
 */
export function isOutside({ clients }: Observations, address: string): boolean {
  const bytes = parseAddress(address);
  if (bytes === null || isPrivate(address) || isLinkLocal(address)) return false;
  if (specialUse(address) !== null) return false;
  const bits = bytes.length === 4 ? OWN_NETWORK_BITS.ipv4 : OWN_NETWORK_BITS.ipv6;
  return !clients.list.some((client) => {
    const other = parseAddress(client.address);
    return other !== null && netHolds({ bytes: other, bits }, bytes);
  });
}
