/** Networks that some clients are in and others are not. */
import { netHolds, parseAddress, printAddress } from '../../../server/base/ip.ts';
import { SOURCE_NETS } from '../thresholds/transport.ts';

/**
 * Returns the networks of these clients (`10.245.7.0/24`), if none of the others is in them; null
 * if some are.
 */
export function netsApart(
  some: readonly string[],
  others: readonly string[],
): readonly string[] | null {
  const rest = others.flatMap((address) => parseAddress(address) ?? []);
  for (const sizes of SOURCE_NETS) {
    const nets = some.flatMap((address) => {
      const bytes = parseAddress(address);
      return bytes === null ? [] : [netOf(bytes, bytes.length === 4 ? sizes.ipv4 : sizes.ipv6)];
    });
    if (nets.length > 0 && !nets.some((net) => rest.some((bytes) => netHolds(net, bytes))))
      return [...new Set(nets.map(({ bytes, bits }) => `${printAddress(bytes)}/${bits}`))];
  }
  return null;
}

function netOf(address: Uint8Array, bits: number): { bytes: Uint8Array; bits: number } {
  return { bytes: address.map((byte, at) => (at * 8 < bits ? byte : 0)), bits };
}
