/** The PROXY protocol header, versions 1 and 2, which a proxy puts in front of a connection or datagram. */
import { parseAddress } from '../../base/ip.ts';

/** Maximum header size, including 16 bytes, the addresses and a load balancer's own extensions. */
export const PROXY_HEADER_MAX = 2048;

/** Maximum size of a version 1 header, including the line ending. */
const TEXT_MAX = 107;
/** The first bytes of version 2. */
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const TEXT = Buffer.from('PROXY ', 'latin1');
const FIXED = 16;

/** The first bytes contain no header, part of a header, a complete header, or one that is malformed or too long. */
export type ProxyVerdict = 'none' | 'partial' | 'header' | 'wrong';

/** Parses headers. Reusable: the fields describe the most recent header. Version 2 headers allocate nothing. */
export class ProxyHeader {
  /** Size of the header in bytes. */
  length = 0;
  version: 1 | 2 = 1;
  /** True if the header is for datagrams. */
  isDatagram = false;
  /**
   * True if the header contains a client address. Health checks by the proxy do not, nor do proxied connections without
   * IP addresses.
   */
  isNamed = false;
  family: 4 | 6 = 4;
  destinationFamily: 4 | 6 = 4;
  /** The client's address, `source[0, 4 or 16)`. */
  readonly source: Uint8Array = new Uint8Array(16);
  sourcePort = 0;
  /** The address that the client connected to. */
  readonly destination: Uint8Array = new Uint8Array(16);
  destinationPort = 0;

  /** Parses the header at the start of `bytes[start, end)`. */
  read(bytes: Uint8Array, start: number, end: number): ProxyVerdict {
    const size = end - start;
    if (size === 0) return 'partial';
    const signature = bytes[start] === SIGNATURE[0] ? SIGNATURE : TEXT;
    const compared = Math.min(size, signature.length);
    for (let i = 0; i < compared; i++) if (bytes[start + i] !== signature[i]) return 'none';
    if (size < signature.length) return 'partial';
    this.isNamed = false;
    this.isDatagram = false;
    return signature === TEXT
      ? this.#readText(bytes, start, end)
      : this.#readBinary(bytes, start, size);
  }

  #readBinary(bytes: Uint8Array, start: number, size: number): ProxyVerdict {
    if (size < FIXED) return 'partial';
    this.version = 2;
    const command = bytes[start + 12]!;
    const kind = bytes[start + 13]!;
    const rest = (bytes[start + 14]! << 8) | bytes[start + 15]!;
    this.length = FIXED + rest;
    if (command >> 4 !== 2 || (command & 0x0f) > 1) return 'wrong';
    if (this.length > PROXY_HEADER_MAX) return 'wrong';
    const family = kind >> 4;
    const transport = kind & 0x0f;
    if (family > 3 || transport > 2) return 'wrong';
    const needed = family === 1 ? 12 : family === 2 ? 36 : family === 3 ? 216 : 0;
    const isLocal = (command & 0x0f) === 0;
    if (!isLocal && rest < needed) return 'wrong';
    if (size < this.length) return 'partial';
    this.isDatagram = transport === 2;
    // Unix sockets have no address to use as the client's.
    if (isLocal || transport === 0 || family === 0 || family === 3) return 'header';
    this.isNamed = true;
    const width = family === 1 ? 4 : 16;
    let at = start + FIXED;
    for (let i = 0; i < width; i++) this.source[i] = bytes[at + i]!;
    at += width;
    for (let i = 0; i < width; i++) this.destination[i] = bytes[at + i]!;
    at += width;
    this.sourcePort = (bytes[at]! << 8) | bytes[at + 1]!;
    this.destinationPort = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    this.#families(width);
    return 'header';
  }

  /** Converts IPv4-mapped IPv6 addresses to IPv4, because access rules match IPv4 addresses. */
  #families(width: 4 | 16): void {
    this.family = width === 4 || unmap(this.source) ? 4 : 6;
    this.destinationFamily = width === 4 || unmap(this.destination) ? 4 : 6;
  }

  #readText(bytes: Uint8Array, start: number, end: number): ProxyVerdict {
    const last = Math.min(end, start + TEXT_MAX);
    let at = start + TEXT.length;
    while (at + 1 < last && (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a)) at++;
    if (at + 1 >= last) return last - start === TEXT_MAX ? 'wrong' : 'partial';
    this.version = 1;
    this.length = at + 2 - start;
    const words = Buffer.from(bytes.buffer, bytes.byteOffset + start, at - start)
      .toString('latin1')
      .split(' ');
    const [, kind, from = '', to = '', fromPort = '', toPort = ''] = words;
    if (kind === 'UNKNOWN') return 'header';
    if (words.length !== 6 || (kind !== 'TCP4' && kind !== 'TCP6')) return 'wrong';
    const width = kind === 'TCP4' ? 4 : 16;
    const source = parseAddress(from);
    const destination = parseAddress(to);
    const ports = [fromPort, toPort].map(portOf);
    if (source?.length !== width || destination?.length !== width) return 'wrong';
    if (ports[0]! < 0 || ports[1]! < 0) return 'wrong';
    this.isNamed = true;
    this.source.set(source);
    this.destination.set(destination);
    [this.sourcePort, this.destinationPort] = ports as [number, number];
    this.#families(width);
    return 'header';
  }
}

/** Parses a decimal port without leading zeros. Returns -1 if it is not a port. */
function portOf(text: string): number {
  if (text.length > 5 || !/^(?:0|[1-9]\d*)$/.test(text)) return -1;
  const port = Number(text);
  return port <= 65_535 ? port : -1;
}

/**
 * Moves the IPv4 part of an IPv4-mapped address to the first four bytes.
 * @returns true if the address was IPv4-mapped
 */
function unmap(bytes: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false;
  if (bytes[10] !== 0xff || bytes[11] !== 0xff) return false;
  bytes.copyWithin(0, 12);
  return true;
}
