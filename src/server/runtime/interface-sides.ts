/** Distinguishes a node's interfaces that lead to its pods from those that lead to other machines (rtnetlink(7)). */
import { listLinks } from './links.ts';
import { dumpNetlink } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** Message types in <linux/rtnetlink.h>. */
const ROUTES = { NEW: 24, GET: 26 };
/** `struct rtmsg` and route attributes. */
const ROUTE = { SIZE: 12, FAMILY: 0, PREFIX: 1, TYPE: 7, INTERFACE: 4, HOPS: 9 };
const UNICAST = 1;
/** `struct rtnexthop`. */
const HOP = { SIZE: 8, INDEX: 4 };

/** Interface types that lead to pods and virtual machines on this node. */
const inner: ReadonlySet<string> = new Set(['veth', 'netkit', 'tun', 'tap']);
/** Interface types that lead to other nodes. */
const outer: ReadonlySet<string> = new Set([
  ...['', 'vxlan', 'geneve', 'wireguard', 'ipip', 'ip6tnl', 'sit'],
  ...['gre', 'gretap', 'ip6gre', 'ip6gretap', 'vti', 'vti6', 'xfrm'],
]);

/** `inside`: pods on this node; `outside`: other machines. */
export type InterfaceSide = 'inside' | 'outside';

/**
 * Maps interface numbers to sides. An interface with a default route leads outside, because the node may itself be a
 * container. Bridges, bonds and VLANs forward packets from both sides, so they are left out.
 * @throws LibcMissing, SystemError
 */
export function interfaceSides(): ReadonlyMap<number, InterfaceSide> {
  const sides = new Map<number, InterfaceSide>();
  for (const { index, kind, isLoopback } of listLinks())
    if (isLoopback || inner.has(kind)) sides.set(index, 'inside');
    else if (outer.has(kind)) sides.set(index, 'outside');
  dumpNetlink(ROUTES.GET, ROUTES.NEW, ROUTE.SIZE, (bytes, view, attributes) => {
    const family = view.getUint8(ROUTE.FAMILY);
    if (family !== AF_INET && family !== AF_INET6) return;
    if (view.getUint8(ROUTE.PREFIX) !== 0 || view.getUint8(ROUTE.TYPE) !== UNICAST) return;
    const whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const one = attributes.get(ROUTE.INTERFACE);
    if (one !== undefined) sides.set(whole.getInt32(one[0], true), 'outside');
    const hops = attributes.get(ROUTE.HOPS);
    if (hops === undefined) return;
    for (let at = hops[0]; at + HOP.SIZE <= hops[1];) {
      sides.set(whole.getInt32(at + HOP.INDEX, true), 'outside');
      at += Math.max(HOP.SIZE, (whole.getUint16(at, true) + 3) & ~3);
    }
  });
  return sides;
}
