import { parseNet, printAddress } from '../base/ip.ts';
import type { Net } from '../base/ip.ts';
import { isAbsoluteName, parseNameOrNull } from '../wire/name.ts';
import { transports, type Scheme } from '../wire/transports.ts';

/**
 * Converts a name or a CIDR to absolute lower-case zones. Returns null if the text is neither. A scheme and a port are
 * ignored. IPv4 prefixes have boundaries at multiples of 8 bits, and IPv6 ones at multiples of 4. Any other length
 * stands for all zones at the next longer boundary (10.0.0.0/15 → two /16 zones).
 */
export function expandZone(text: string): readonly string[] | null {
  const address = splitAddress(splitScheme(text).rest);
  return 'wrong' in address ? null : address.zones;
}

/** The permitted words before `://`. */
export const schemes: readonly (Scheme | 'unix')[] = [
  ...(Object.keys(transports) as Scheme[]),
  'unix',
];

/** Returns the transport before `://`, or `dns` if it is missing or unknown. */
export function splitScheme(text: string): { scheme: Scheme | 'unix'; rest: string } {
  for (const scheme of schemes) {
    const prefix = `${scheme}://`;
    if (text.startsWith(prefix)) return { scheme, rest: text.slice(prefix.length) };
  }
  return { scheme: 'dns', rest: text };
}

/** Parses the zone and port in an address without its scheme. `wrong` is CoreDNS's error message. */
export function splitAddress(
  text: string,
): { zones: readonly string[]; port: number | null } | { wrong: string } {
  let zone = text;
  let port: number | null = null;
  const colon = text.lastIndexOf(':');
  if (colon >= 0 && colon === text.length - 1) {
    return { wrong: `expecting data after last colon: ${JSON.stringify(text)}` };
  }
  if (colon >= 0 && /^[+-]?\d+$/.test(text.slice(colon + 1))) {
    port = Number(text.slice(colon + 1));
    zone = text.slice(0, colon);
  }
  const size = Buffer.byteLength(zone);
  if (size > 255) return { wrong: `specified zone is too long: ${size} > 255` };
  if (!isDomainName(zone)) return { wrong: `zone is not a valid domain name: ${zone}` };
  const net = zone.includes('/') ? parseNet(zone) : null;
  if (net === null) {
    const absolute = absoluteName(zone).toLowerCase();
    // Include the final dot, which makes it absolute.
    if (!isDomainName(absolute)) return { wrong: `zone is not a valid domain name: ${absolute}` };
    return { zones: [absolute], port };
  }
  if (zone.startsWith(':') || (zone.startsWith('0') && zone.includes(':'))) {
    return { wrong: `invalid CIDR ${zone}` };
  }
  return { zones: reverseZones(net), port };
}

/**
 * Returns true if every label has 1 to 63 bytes and the whole name has at most 255, counting each escape (`\.`, `\065`)
 * as one.
 */
export function isDomainName(text: string): boolean {
  return text !== '' && parseNameOrNull(text) !== null;
}

/** Returns the name with a final dot. An escaped dot (`a\.`) does not end a name. */
export function absoluteName(text: string): string {
  return isAbsoluteName(text) ? text : `${text}.`;
}

function reverseZones(net: Net): readonly string[] {
  const step = net.bytes.length === 4 ? 8 : 4;
  const bits = Math.ceil(net.bits / step) * step;
  const first = masked(net);
  const zones: string[] = [];
  for (let i = 0; i < 2 ** (bits - net.bits); i++) {
    const bytes = first.slice();
    // Both boundaries are within the same byte, because the next boundary is at most 7 bits beyond the prefix.
    if (bits > 0) bytes[(bits - 1) >> 3]! |= i << ((8 - (bits & 7)) & 7);
    zones.push(reverseZone(bytes, bits, step));
  }
  return zones;
}

function masked(net: Net): Uint8Array {
  return net.bytes.map((byte, at) => {
    const keep = Math.min(8, Math.max(0, net.bits - 8 * at));
    return byte & (0xff00 >> keep);
  });
}

function reverseZone(bytes: Uint8Array, bits: number, step: number): string {
  const labels =
    step === 8
      ? printAddress(bytes).split('.')
      : Array.from(bytes, (byte) => [byte >> 4, byte & 15]).flatMap((pair) =>
          pair.map((nibble) => nibble.toString(16)),
        );
  const tail = step === 8 ? 'in-addr.arpa.' : 'ip6.arpa.';
  return [...labels.slice(0, bits / step).toReversed(), tail].join('.');
}

/**
 * Returns true if the zone follows the preferred syntax in RFC 1035 section 2.3.1, as the root and reverse zones always
 * do.
 */
export function followsPreferredSyntax(zone: string): boolean {
  if (zone === '.' || zone.endsWith('.in-addr.arpa.') || zone.endsWith('.ip6.arpa.')) return true;
  return zone
    .slice(0, -1)
    .split('.')
    .every((label) => /^[a-z]([a-z0-9-]*[a-z0-9])?$/i.test(label));
}
