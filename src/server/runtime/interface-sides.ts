/** Distinguishes a node's interfaces that lead to its pods from those that lead to other machines (rtnetlink(7)). */
import { attributesIn, dumpNetlink } from './netlink.ts';
import { AF_INET, AF_INET6 } from './socket-address.ts';

/** Message types in <linux/rtnetlink.h>. */
const KIND = { NEW_LINK: 16, GET_LINK: 18, NEW_ROUTE: 24, GET_ROUTE: 26 };
/** `struct ifinfomsg` and link attributes (<linux/if_link.h>). */
const LINK = { SIZE: 16, HARDWARE: 2, INDEX: 4, INFO: 18, INFO_KIND: 1 };
/** `struct rtmsg` and route attributes. */
const ROUTE = { SIZE: 12, FAMILY: 0, PREFIX: 1, TYPE: 7, INTERFACE: 4, HOPS: 9 };
const UNICAST = 1;
/** `struct rtnexthop`. */
const HOP = { SIZE: 8, INDEX: 4 };
/** ARPHRD_LOOPBACK. */
const LOOPBACK = 772;

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
  dumpNetlink(KIND.GET_LINK, KIND.NEW_LINK, LINK.SIZE, (bytes, view, attributes) => {
    const info = attributes.get(LINK.INFO);
    const whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const place = info && attributesIn(whole, info[0], info[1]).get(LINK.INFO_KIND);
    const text = place === undefined ? '' : Buffer.from(bytes.subarray(...place)).toString();
    const kind = text.replace(/\0.*/s, '');
    const isLoopback = view.getUint16(LINK.HARDWARE, true) === LOOPBACK;
    if (isLoopback || inner.has(kind)) sides.set(view.getInt32(LINK.INDEX, true), 'inside');
    else if (outer.has(kind)) sides.set(view.getInt32(LINK.INDEX, true), 'outside');
  });
  dumpNetlink(KIND.GET_ROUTE, KIND.NEW_ROUTE, ROUTE.SIZE, (bytes, view, attributes) => {
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
