/** IPv6 addresses that DNS64 creates from IPv4 addresses (RFC 6147). */
import { netHolds, parseAddress, parseNet, printAddress } from '../../../server/base/ip.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { NAT64_PREFIX as PREFIX } from '../thresholds/answers.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';

/** RFC 6052, and RFC 8215 for local use. */
const WELL_KNOWN = [parseNet('64:ff9b::/96')!, parseNet('64:ff9b:1::/48')!];

/** An AAAA answer that contains an IPv4 address. */
export interface Synthesis {
  readonly name: string;
  readonly prefix: string;
  readonly address: string;
  readonly ipv4: string;
  readonly view: NameView;
}

/**
 * The first of the name's IPv6 addresses that has a well-known prefix, or ends in one of its IPv4
 * addresses. Null if there is none.
 */
export function synthesisOf(view: NameView, { names }: Observations): Synthesis | null {
  const { name } = view;
  const ipv4 = new Set(names.get(name, TYPE.A)?.addresses);
  for (const address of view.addresses) {
    const bytes = parseAddress(address);
    if (bytes?.length !== 16) continue;
    const tail = printAddress(bytes, PREFIX, 4);
    const prefix = `${printAddress(Uint8Array.from([...bytes.subarray(0, PREFIX), 0, 0, 0, 0]))}/96`;
    if (isWellKnown(prefix) || ipv4.has(tail))
      return { ...{ name, prefix, address, view }, ipv4: tail };
  }
  return null;
}

/** True if the prefix, as text, is reserved for such addresses. */
export function isWellKnown(prefix: string): boolean {
  return WELL_KNOWN.some((net) => netHolds(net, parseNet(prefix)!.bytes));
}
