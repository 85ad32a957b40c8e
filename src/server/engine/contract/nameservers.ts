/** Reads files in resolv.conf format where a directive accepts upstreams. */
import { isIP } from '../../base/ip.ts';

/** Returns the addresses in `nameserver` lines in file order, without duplicates (resolv.conf(5)). */
export function readNameservers(text: string): readonly string[] {
  const found: string[] = [];
  for (const line of text.split('\n')) {
    const address = /^\s*nameserver\s+([^\s#;]+)/.exec(line)?.[1];
    if (address !== undefined && isIP(address) !== 0 && !found.includes(address))
      found.push(address);
  }
  return found;
}
