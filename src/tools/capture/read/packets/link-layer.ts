/** Parses link headers to find a frame's network packet and protocol. */
import { LINK, type Frame } from './frame.ts';

export const ETHER: { readonly IPV4: 0x0800; readonly ARP: 0x0806; readonly IPV6: 0x86dd } = {
  IPV4: 0x0800,
  ARP: 0x0806,
  IPV6: 0x86dd,
} as const;

const VLAN: ReadonlySet<number> = new Set([0x8100, 0x88a8, 0x9100]);
const VLANS_MAX = 3;

/** The start of the network packet, and its EtherType, which is 0 if there is none. */
export interface NetworkPlace {
  at: number;
  type: number;
}

export function isKnownLink(link: number): boolean {
  return known.has(link);
}

const known: ReadonlySet<number> = new Set(Object.values(LINK));

/**
 * Writes the location of the frame's network packet into `place`.
 * @returns false if the frame is too short or the link type is unknown
 */
export function networkPlace(frame: Frame, place: NetworkPlace): boolean {
  const { bytes, start, end } = frame;
  switch (frame.link) {
    case LINK.ETHERNET:
      return behindType(bytes, start + 12, end, place);
    case LINK.SLL:
      return behindType(bytes, start + 14, end, place);
    case LINK.SLL2:
      if (start + 20 > end) return false;
      return tagged(bytes, start + 20, end, (bytes[start]! << 8) | bytes[start + 1]!, place);
    case LINK.NULL:
    case LINK.LOOP:
      return byVersion(bytes, start + 4, end, place);
    case LINK.RAW:
    case LINK.RAW_BSD:
    case LINK.RAW_OPENBSD:
    case LINK.IPV4:
    case LINK.IPV6:
      return byVersion(bytes, start, end, place);
    default:
      return false;
  }
}

/**
 * Numbers the place where a frame was seen. Captures on all interfaces (`-i any`) include the interface (SLL2) or the
 * direction (SLL), so a packet that passes through a node appears several times.
 */
export function portOf({ bytes, start, end, link, port }: Frame): number {
  if (link === LINK.SLL2 && start + 8 <= end)
    return NUMBERED + port * 65_536 + ((bytes[start + 6]! << 8) | bytes[start + 7]!);
  if (link === LINK.SLL && start + 2 <= end) return DIRECTED + port * 65_536 + bytes[start + 1]!;
  return port;
}

/** Places that include the interface’s number (SLL2), and those with only a direction (SLL). */
const [NUMBERED, DIRECTED] = [2 ** 40, 2 ** 41];
/** Interface numbers reserved for each capture when several are read together. */
export const INTERFACES_MAX = 256;

/** The capture and the interface number in it, for a place returned by `portOf`. Null if unknown. */
export function interfaceAt(
  port: number,
): { readonly capture: number; readonly number: number } | null {
  if (port >= DIRECTED) return null;
  if (port < NUMBERED)
    return { capture: Math.floor(port / INTERFACES_MAX), number: port % INTERFACES_MAX };
  const at = port - NUMBERED;
  return { capture: Math.floor(at / 65_536 / INTERFACES_MAX), number: at % 65_536 };
}

/** @param at the EtherType's offset */
export function behindType(
  bytes: Uint8Array,
  at: number,
  end: number,
  place: NetworkPlace,
): boolean {
  if (at + 2 > end) return false;
  return tagged(bytes, at + 2, end, (bytes[at]! << 8) | bytes[at + 1]!, place);
}

function tagged(
  bytes: Uint8Array,
  at: number,
  end: number,
  type: number,
  place: NetworkPlace,
): boolean {
  for (let tags = 0; tags < VLANS_MAX && VLAN.has(type); tags++) {
    if (at + 4 > end) return false;
    type = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    at += 4;
  }
  place.at = at;
  place.type = type;
  return true;
}

/**
 * For links without a type field, the packet's version decides, because NULL's family number differs between systems.
 */
export function byVersion(
  bytes: Uint8Array,
  at: number,
  end: number,
  place: NetworkPlace,
): boolean {
  if (at >= end) return false;
  const version = bytes[at]! >> 4;
  place.at = at;
  place.type = version === 4 ? ETHER.IPV4 : version === 6 ? ETHER.IPV6 : 0;
  return true;
}
