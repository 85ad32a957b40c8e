import { networkInterfaces } from 'node:os';
import { parseAddress } from './ip.ts';

/**
 * Returns the addresses of all network interfaces, as 4 or 16 bytes each. Without permission to list the interfaces,
 * there are none.
 */
export function machineAddresses(): Uint8Array[] {
  let found: ReturnType<typeof networkInterfaces>;
  try {
    found = networkInterfaces();
  } catch {
    return [];
  }
  return Object.values(found)
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => parseAddress(address))
    .filter((address) => address !== null);
}
