/** Special address ranges that no server on the network can use, and their purpose. */
import { netHolds, parseAddress, parseNet, type Net } from '../../../server/base/ip.ts';

const ranges: readonly (readonly [net: Net, use: string])[] = (
  [
    ['0.0.0.0/8', 'is not a host address'],
    ['127.0.0.0/8', 'is a loopback address'],
    ['198.18.0.0/15', 'is reserved for tests and used by proxies as a fake address'],
    ['224.0.0.0/4', 'is a multicast address'],
    ['240.0.0.0/4', 'is reserved and used by service meshes as a virtual address'],
    ['64:ff9b::/96', 'was created by DNS64 and requires a NAT64 gateway'],
    ['100::/64', 'is a discard address'],
    ['::1/128', 'is a loopback address'],
  ] as const
).map(([net, use]) => [parseNet(net)!, use]);

/** `is reserved …`; null for an ordinary address. */
export function specialUse(address: string): string | null {
  const bytes = parseAddress(address);
  if (bytes === null) return null;
  return ranges.find(([net]) => netHolds(net, bytes))?.[1] ?? null;
}
