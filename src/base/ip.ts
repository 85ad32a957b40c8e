import { isIP } from 'node:net';

/** The 4 or 16 bytes of an address in text form, network order; null if it is none. Zones (`%eth0`) are not accepted. */
export function parseAddress(text: string): Uint8Array | null {
  const kind = isIP(text);
  if (kind === 4) return parseIPv4(text);
  if (kind === 6 && !text.includes('%')) return parseIPv6(text);
  return null;
}

/**
 * The usual text form of an address as the Kubernetes API may hold it, where objects of old clusters are written in ways that
 * other readers refuse or understand differently: `010.009.000.006` is decimal (10.9.0.6), `::ffff:10.9.0.6` is IPv4. Other
 * texts stay as they are, whether or not they are addresses.
 */
export function plainAddress(text: string): string {
  if (!text.includes(':')) return ODD_QUAD.test(text) ? text.replaceAll(ZEROS, '') : text;
  if (!MAPPED.test(text)) return text;
  const bytes = parseAddress(text);
  const printed = bytes === null ? text : printAddress(bytes);
  return printed.startsWith(MAPPED_PREFIX) && printed.includes('.')
    ? printed.slice(MAPPED_PREFIX.length)
    : text;
}

const ODD_QUAD = /^(?=[\d.]+$)(?:.*\.)?0\d/;
const ZEROS = /\b0+(?=\d)/g;
const MAPPED = /^[0:]+:ffff:/i;
const MAPPED_PREFIX = '::ffff:';

function parseIPv4(text: string): Uint8Array {
  const bytes = new Uint8Array(4);
  let byte = 0;
  let index = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2e) {
      bytes[index++] = byte;
      byte = 0;
    } else byte = 10 * byte + code - 0x30;
  }
  bytes[index] = byte;
  return bytes;
}

function parseIPv6(text: string): Uint8Array {
  let words = text;
  const lastColon = text.lastIndexOf(':');
  if (text.includes('.')) {
    const tail = parseIPv4(text.slice(lastColon + 1));
    const high = ((tail[0]! << 8) | tail[1]!).toString(16);
    const low = ((tail[2]! << 8) | tail[3]!).toString(16);
    words = `${text.slice(0, lastColon + 1)}${high}:${low}`;
  }
  const [head = '', rest] = words.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = rest === undefined || rest === '' ? [] : rest.split(':');
  const gap = rest === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(gap).fill('0'), ...after];
  const bytes = new Uint8Array(16);
  groups.forEach((group, index) => {
    const value = Number.parseInt(group, 16);
    bytes[2 * index] = value >> 8;
    bytes[2 * index + 1] = value & 0xff;
  });
  return bytes;
}

/** The text form of the 4 or 16 bytes at `at`; IPv6 as RFC 5952 has it. */
export function printAddress(
  bytes: Uint8Array,
  at = 0,
  length: number = bytes.length - at,
): string {
  if (length === 4) return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
  const groups: number[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((bytes[at + i]! << 8) | bytes[at + i + 1]!);
  // IPv4-mapped addresses keep their dotted tail (RFC 5952 section 5).
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${printAddress(bytes, at + 12, 4)}`;
  }
  let start = -1;
  let run = 1;
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && groups[end] === 0) end++;
    if (end - i > run) {
      start = i;
      run = end - i;
    }
    i = Math.max(i, end - 1);
  }
  const print = (part: number[]): string => part.map((group) => group.toString(16)).join(':');
  if (start < 0) return print(groups);
  return `${print(groups.slice(0, start))}::${print(groups.slice(start + run))}`;
}

/** A net in CIDR form. */
export interface Net {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** `10.0.0.0/8`, `2001:db8::/32`, or a bare address (all its bits); null if it is none of these. */
export function parseNet(text: string): Net | null {
  const slash = text.indexOf('/');
  const bytes = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (bytes === null) return null;
  const most = bytes.length * 8;
  if (slash < 0) return { bytes, bits: most };
  const digits = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(digits) || Number(digits) > most) return null;
  return { bytes, bits: Number(digits) };
}

/** Whether the net holds the address of `length` bytes at `at`. */
export function netHolds(
  net: Net,
  bytes: Uint8Array,
  at = 0,
  length: number = bytes.length - at,
): boolean {
  if (net.bytes.length !== length) return false;
  const whole = net.bits >> 3;
  for (let i = 0; i < whole; i++) if (net.bytes[i] !== bytes[at + i]) return false;
  const rest = net.bits & 7;
  if (rest === 0) return true;
  return (net.bytes[whole]! ^ bytes[at + whole]!) >> (8 - rest) === 0;
}

/** An address as it stands before a port and in a URL: `192.0.2.1`, `[2001:db8::1]`. */
export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** An address and port as people write them: `192.0.2.1:53`, `[2001:db8::1]:53`. */
export function printHostPort(host: string, port: number): string {
  return `${bracketed(host)}:${port}`;
}
