/**
 * Converts an address from text to 4 or 16 bytes in network order. Returns null if it is malformed. Zones (`%eth0`) are
 * not accepted.
 */
export function parseAddress(text: string): Uint8Array | null {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

/**
 * Returns true for 127.0.0.0/8 and ::1.
 * @param address 4 or 16 bytes
 */
export function isLoopback(address: Uint8Array): boolean {
  if (address.length === 4) return address[0] === 127;
  return address[15] === 1 && address.subarray(0, 15).every((byte) => byte === 0);
}

/** Returns true if the host, as written, is this machine: `localhost`, `::1` or `127.0.0.1`. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

/**
 * Returns the family of an address, with or without a zone (`fe80::1%eth0`): 4, 6, or 0 if it is malformed. This is
 * equivalent to the runtime's function, whose regular expression costs each thread 5 ms on first use.
 */
export function isIP(text: string): 0 | 4 | 6 {
  const zone = text.indexOf('%');
  if (zone >= 0) return ZONE.test(text) && parseIPv6(text.slice(0, zone)) !== null ? 6 : 0;
  const bytes = parseAddress(text);
  return bytes === null ? 0 : bytes.length === 4 ? 4 : 6;
}

const ZONE = /^[^%]*%[\da-z.:-]+$/i;

/**
 * Normalizes an address from the Kubernetes API. Objects in old clusters may use forms that other parsers reject or
 * misread: `010.009.000.006` is decimal (10.9.0.6), and `::ffff:10.9.0.6` is IPv4. Any other text is returned
 * unchanged.
 */
export function plainAddress(text: string): string {
  if (!text.includes(':')) return ODD_QUAD.test(text) ? text.replaceAll(ZEROS, '') : text;
  if (!MAPPED.test(text)) return text;
  const bytes = parseAddress(text);
  const printed = bytes === null ? text : printAddress(bytes);
  const plain = unmapped(printed);
  return plain === printed ? text : plain;
}

/** Converts an IPv4-mapped address (`::ffff:10.9.0.6`), as reported by dual-stack sockets, to IPv4 notation. */
export function unmapped(address: string): string {
  return address.startsWith(MAPPED_PREFIX) && address.includes('.')
    ? address.slice(MAPPED_PREFIX.length)
    : address;
}

/** Like `unmapped`, for an address in bytes. */
export function unmappedBytes(address: Uint8Array): Uint8Array {
  const [high, low] = [address[10], address[11]];
  if (address.length !== 16 || high !== 0xff || low !== 0xff) return address;
  return address.subarray(0, 10).every((byte) => byte === 0) ? address.subarray(12) : address;
}

const ODD_QUAD = /^(?=[\d.]+$)(?:.*\.)?0\d/;
const ZEROS = /\b0+(?=\d)/g;
const MAPPED = /^[0:]+:ffff:/i;
const MAPPED_PREFIX = '::ffff:';

/** Returns null unless the text from `from` on consists of four decimal numbers without leading zeros. */
function parseIPv4(text: string, from = 0): Uint8Array | null {
  const bytes = new Uint8Array(4);
  let index = 0;
  let digits = 0;
  let byte = 0;
  for (let at = from; at <= text.length; at++) {
    const digit = at < text.length ? text.charCodeAt(at) - ZERO : DOT;
    if (digit === DOT) {
      if (digits === 0 || byte > 255 || index === 4) return null;
      bytes[index++] = byte;
      byte = digits = 0;
    } else if (digit < 0 || digit > 9 || (digits > 0 && byte === 0)) return null;
    else {
      byte = 10 * byte + digit;
      if (++digits > 3) return null;
    }
  }
  return index === 4 ? bytes : null;
}

const ZERO = 0x30;
/** The dot, as an offset from '0' like the digits. */
const DOT = 0x2e - ZERO;

/** RFC 4291 section 2.2: groups of one to four hex digits and at most one `::`, which replaces one or more groups. */
function parseIPv6(text: string): Uint8Array | null {
  const parts = text.split('::');
  if (parts.length > 2) return null;
  const [head = '', tail] = parts;
  const before = parseGroups(head, tail === undefined);
  const after = tail === undefined ? [] : parseGroups(tail, true);
  if (before === null || after === null) return null;
  const count = before.length + after.length;
  if (tail === undefined ? count !== 8 : count > 7) return null;
  const bytes = new Uint8Array(16);
  const write = (group: number, index: number): void => {
    bytes[2 * index] = group >> 8;
    bytes[2 * index + 1] = group & 0xff;
  };
  before.forEach(write);
  after.forEach((group, index) => write(group, 8 - after.length + index));
  return bytes;
}

/** @param last true if these groups end the address, so that the last two may be in IPv4 notation */
function parseGroups(text: string, last: boolean): number[] | null {
  if (text === '') return [];
  const groups: number[] = [];
  const words = text.split(':');
  for (const [index, word] of words.entries()) {
    if (last && index === words.length - 1 && word.includes('.')) {
      const quad = parseIPv4(word);
      if (quad === null) return null;
      groups.push((quad[0]! << 8) | quad[1]!, (quad[2]! << 8) | quad[3]!);
    } else if (HEX_GROUP.test(word)) groups.push(Number.parseInt(word, 16));
    else return null;
  }
  return groups;
}

const HEX_GROUP = /^[\da-f]{1,4}$/i;

/** Prints the 4 or 16 bytes at `at`; IPv6 as in RFC 5952. */
export function printAddress(
  bytes: Uint8Array,
  at = 0,
  length: number = bytes.length - at,
): string {
  if (length === 4) return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
  // IPv4-mapped addresses keep the dotted tail (RFC 5952 section 5).
  if (isMapped(bytes, at)) return `${MAPPED_PREFIX}${printAddress(bytes, at + 12, 4)}`;
  let gap = -1;
  let run = 1;
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && groupOf(bytes, at, end) === 0) end++;
    if (end - i > run) {
      gap = i;
      run = end - i;
    }
    i = Math.max(i, end - 1);
  }
  let out = 0;
  for (let i = 0; i < 8; i++) {
    if (i > 0 && i !== gap + run) scratch[out++] = COLON;
    if (i === gap) {
      scratch[out++] = COLON;
      if (i === 0) scratch[out++] = COLON;
      i += run - 1;
      continue;
    }
    const group = groupOf(bytes, at, i);
    let shift = 12;
    while (shift > 0 && group >> shift === 0) shift -= 4;
    for (; shift >= 0; shift -= 4) scratch[out++] = HEX.charCodeAt((group >> shift) & 0xf);
  }
  return scratch.toString('latin1', 0, out);
}

const COLON = 0x3a;
const HEX = '0123456789abcdef';
/** Scratch space. There is one per thread, because captures print an address for every packet. */
const scratch = Buffer.alloc(40);

function groupOf(bytes: Uint8Array, at: number, group: number): number {
  return (bytes[at + 2 * group]! << 8) | bytes[at + 2 * group + 1]!;
}

function isMapped(bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < 10; i++) if (bytes[at + i] !== 0) return false;
  return bytes[at + 10] === 0xff && bytes[at + 11] === 0xff;
}

/** A prefix in CIDR form. */
export interface Net {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** Parses `10.0.0.0/8`, `2001:db8::/32`, or a bare address (a full-length prefix). Returns null for any other text. */
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

/** Returns true if the prefix contains the address of `length` bytes at `at`. */
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

/** Prints an address the way it appears before a port and in URLs: `192.0.2.1`, `[2001:db8::1]`. */
export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** Prints an address and port: `192.0.2.1:53`, `[2001:db8::1]:53`. */
export function printHostPort(host: string, port: number): string {
  return `${bracketed(host)}:${port}`;
}

/** A host and a port. The port is null if the text has none. */
export interface HostPortText {
  readonly host: string;
  readonly port: number | null;
}

/**
 * Parses a server address: `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1` or `[2001:db8::1]:53`. A link-local address may
 * name its interface (`fe80::1%eth0`). Names are not accepted. The port is 0 to 65535.
 */
export function parseHostPort(text: string): HostPortText | null {
  if (isHost(text)) return { host: text, port: null };
  const found = splitHostPort(text);
  return found !== null && isHost(found.host) && (found.port ?? 0) <= 65_535 ? found : null;
}

/**
 * Splits at the colon before the port: `:9153`, `localhost:8080`, `[::1]:53`, or a bare host. The caller validates the
 * host and the port's range (at most five digits). Returns null if there are unbracketed colons or a non-numeric port.
 */
export function splitHostPort(text: string): HostPortText | null {
  const parts = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  if (parts === null) return null;
  return {
    host: parts[1] ?? parts[2] ?? '',
    port: parts[3] === undefined ? null : Number(parts[3]),
  };
}

function isHost(text: string): boolean {
  return parseAddress(text.replace(/%.*/s, '')) !== null;
}
