/** ICMP errors for DNS packets: the kinds, and the counts for each. */

import { TIME_EXCEEDED } from '../../capture/read/packets/dissect.ts';

/** Sent by a router when no host on its link has the address: type 3 code 1 (RFC 1812). */
export const HOST_UNREACHABLE: number = 0x301;
/** The ICMPv6 equivalent, type 1 code 3 (RFC 4443). */
export const ADDRESS_UNREACHABLE: number = 0x103;
/** Sent by a firewall: type 3 code 9, 10 and 13 (RFC 1812), ICMPv6 type 1 code 1 (RFC 4443). */
export const PROHIBITED: ReadonlySet<number> = new Set([0x309, 0x30a, 0x30d, 0x101]);
/** Sent by a kernel for a closed port: type 3 code 3 (RFC 792), ICMPv6 type 1 code 4 (RFC 4443). */
export const CLOSED: ReadonlySet<number> = new Set([0x303, 0x104]);

export interface Unreachable {
  count: number;
  /** The sender of the first error. */
  readonly sender: string;
  /** The number of errors in which a router reports that no host on its link has the address. */
  noNeighbour: number;
  /** The first error’s type and code, as `type * 256 + code`. */
  readonly code: number;
}

const meanings: ReadonlyMap<number, string> = new Map([
  [
    TIME_EXCEEDED,
    'their TTL expired in transit (ICMP time exceeded), so they loop between routers',
  ],
  [HOST_UNREACHABLE, 'no host on its link has the address (ICMP host unreachable)'],
  [ADDRESS_UNREACHABLE, 'no host on its link has the address (ICMP address unreachable)'],
  [0x300, 'it has no route to the address (ICMP network unreachable)'],
  [0x100, 'it has no route to the address (ICMPv6 no route)'],
  [0x303, 'nothing listens on the port (ICMP port unreachable)'],
  [0x104, 'nothing listens on the port (ICMPv6 port unreachable)'],
]);

/** A sentence about errors for queries to an address; null if there were none. */
export function icmpText(errors: Unreachable | undefined): string | null {
  if (errors === undefined) return null;
  const { count, sender, code } = errors;
  const meaning =
    meanings.get(code) ?? `undeliverable (ICMP type ${code >> 8}, code ${code & 255})`;
  return `${count} packets to it came back from ${sender}: ${meaning}.`;
}

/** An ICMP error for a closed port on a name server. */
export interface Rejection {
  readonly timeMs: number;
  /** The sender of the error: the addressed host, or a router or node that answers for it. */
  readonly sender: string;
  readonly client: string;
  readonly port: number;
  readonly target: string;
}
