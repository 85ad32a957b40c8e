/** Addresses that no server on the network can have: special ranges, and what they are made for. */
import { netHolds, parseAddress, parseNet, type Net } from '../../../server/base/ip.ts';

const ranges: readonly (readonly [net: Net, use: string])[] = (
  [
    ['0.0.0.0/8', 'is not an address of a host'],
    ['127.0.0.0/8', 'is a loopback address'],
    ['198.18.0.0/15', 'is reserved for tests, and used by proxies for addresses of their own'],
    ['224.0.0.0/4', 'is a multicast address'],
    ['240.0.0.0/4', 'is reserved, and used by service meshes for addresses of their own'],
    ['64:ff9b::/96', 'is made by DNS64, and needs a NAT64 gateway'],
    ['100::/64', 'is a discard address'],
    ['::1/128', 'is a loopback address'],
  ] as const
).map(([net, use]) => [parseNet(net)!, use]);

/** `is reserved, …`; null: an ordinary address. */
export function specialUse(address: string): string | null {
  const bytes = parseAddress(address);
  if (bytes === null) return null;
  return ranges.find(([net]) => netHolds(net, bytes))?.[1] ?? null;
}
