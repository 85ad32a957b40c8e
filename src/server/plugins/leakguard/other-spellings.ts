/** Alternative spellings of private names. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { parseName, suffixAt, type WireName } from '../../wire/name.ts';

const DOT = 0x2e;
const ZERO = 0x30;

/**
 * Returns the name that was meant by one with dots inside labels (`backend.shop.svc.cluster\.local`), so that each dot
 * ends a label. Returns null if no label contains a dot.
 * @param name wire form, lower case
 */
export function splitAtDots(name: Uint8Array, length: number): WireName | null {
  // Usually no label contains a dot, and none is 46 bytes long.
  const first = name.indexOf(DOT);
  if (first < 0 || first >= length) return null;
  const labels: Uint8Array[] = [];
  let dots = 0;
  for (let at = 0; name[at] !== 0; at += name[at]! + 1) {
    const end = at + 1 + name[at]!;
    for (let from = at + 1; from <= end; from++) {
      let to = from;
      while (to < end && name[to] !== DOT) to++;
      if (to < end) dots++;
      if (to > from) labels.push(name.subarray(from, to));
      from = to;
    }
  }
  return dots === 0 ? null : joined(labels);
}

/** The ends of reverse names, `in-addr.arpa` and `ip6.arpa`, without the root. */
const reverse: readonly Uint8Array[] = ['in-addr.arpa.', 'ip6.arpa.'].map((text) =>
  parseName(text).subarray(0, -1),
);

export interface EmbeddedReverseName {
  /** Without its suffix, in the usual spelling. */
  readonly name: WireName;
  /** Offsets of the labels before `arpa`, of which the last is `in-addr` or `ip6`. */
  readonly labels: readonly number[];
}

/** Returns the reverse name at the start of this one, without any search domain, or null if there is none. */
export function reverseNameIn(name: Uint8Array, length: number): EmbeddedReverseName | null {
  const labels: number[] = [];
  for (let at = 0; at < length - 1; at += name[at]! + 1) {
    labels.push(at);
    for (const end of reverse) {
      if (at + end.length >= length || !holdsAt(name, at, end)) continue;
      const before = labels
        .slice(0, -1)
        .map((label) => withoutZeros(name.subarray(label + 1, label + 1 + name[label]!)));
      return { name: joined([...before, ...labelsOf(end)]), labels };
    }
  }
  return null;
}

/** The reverse zone of Teredo addresses, `2001::/32` (RFC 4380). */
const teredo = parseName('0.0.0.0.1.0.0.2.ip6.arpa.');
/** Number of nibbles in an address. */
const NIBBLES = 32;

/**
 * Returns the reverse name for the client's IPv4 address in a Teredo address, where all of its bits are inverted.
 * Returns null for other addresses.
 */
export function teredoClient(name: WireName): WireName | null {
  if (name.length !== 2 * NIBBLES + teredo.length - 2 * 8 || suffixAt(name, teredo) < 0)
    return null;
  const octets: Uint8Array[] = [];
  for (let at = 1; at < 16; at += 4) {
    const octet = Number.parseInt(String.fromCharCode(name[at + 2]!, name[at]!), 16) ^ 255;
    octets.push(Buffer.from(String(octet)));
  }
  return joined([...octets, ...labelsOf(reverse[0]!)]);
}

/** Returns `010` as `10`, because some programs pad with zeros. */
function withoutZeros(label: Uint8Array): Uint8Array {
  let from = 0;
  while (from < label.length - 1 && label[from] === ZERO) from++;
  return label.subarray(from);
}

/** Returns a name's labels, whether or not the name ends with the root. */
export function labelsOf(wire: Uint8Array): readonly Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < wire.length && wire[at] !== 0; at += wire[at]! + 1)
    parts.push(wire.subarray(at + 1, at + 1 + wire[at]!));
  return parts;
}

function joined(labels: readonly Uint8Array[]): WireName {
  const bytes = new Uint8Array(labels.reduce((sum, { length }) => sum + 1 + length, 1));
  let at = 0;
  for (const label of labels) {
    bytes[at] = label.length;
    bytes.set(label, at + 1);
    at += 1 + label.length;
  }
  return bytes;
}
