/** Encodes endpoints, addresses and ports for transport to workers and for storage there. */
import { copyOf, holdsAt } from '../../../base/copy-bytes.ts';
import { parseAddress, parseNet, printAddress } from '../../../base/ip.ts';
import type { Endpoint, ServicePort } from '../../../kube/store/objects.ts';
import { PLACE_BYTES, placeHash } from './place-hash.ts';
import { parseNameOrNull } from '../../../wire/name.ts';

/**
 * Endpoints and addresses as strings in which each character is a byte. On V8's heap, such a string uses 16 bytes more
 * than its content, while a typed array uses at least 200. Two states of a slice are equal if their strings are. One
 * endpoint address consists of flags, then 4 or 16 address bytes or a length-prefixed domain name in wire form.
 * Depending on the flags, a length-prefixed host name, a length-prefixed zone, and hints follow. Hints start with a
 * byte that contains the number of zones (low four bits) and nodes (high four bits), followed by their `placeHash`es.
 */
const V6 = 1;
const HOST = 2;
const ZONE = 4;
const NAME = 8;
const HINTS = 16;
/** The API allows eight zones and eight nodes for each endpoint. */
const HINTS_MAX = 15;
/** A zone has one length byte. */
const TEXT_MAX = 255;

/**
 * Encodes the ready addresses of a slice's endpoints in order. Addresses that are neither an IP address nor a domain
 * name are skipped.
 */
export function encodeEndpoints(endpoints: readonly Endpoint[], podNames: boolean): string {
  let encoded = '';
  for (const endpoint of endpoints) {
    if (!endpoint.ready) continue;
    const host = hostOf(endpoint, podNames);
    const zone = latin(endpoint.zone.toLowerCase());
    const hints = encodeHints(endpoint);
    for (const text of endpoint.addresses) {
      const ip = parseAddress(text);
      const address = ip ?? parseNameOrNull(text);
      if (address === null || address.length === 1) continue;
      const named = ip === null;
      // A dashed address can be decoded, while a dashed name has to be stored.
      const label = host === '' && named ? hostLabel(addressLabel(text.replace(/\.$/, ''))) : host;
      const form = named ? NAME : address.length === 16 ? V6 : 0;
      encoded += String.fromCharCode(
        form | (label === '' ? 0 : HOST) | (zone === '' ? 0 : ZONE) | (hints === '' ? 0 : HINTS),
        ...(named ? [address.length] : []),
        ...address,
      );
      if (label !== '') encoded += String.fromCharCode(label.length) + label;
      if (zone !== '') encoded += String.fromCharCode(zone.length) + zone;
      encoded += hints;
    }
  }
  return flat(encoded);
}

function encodeHints({ forZones = [], forNodes = [] }: Endpoint): string {
  const zones = forZones.slice(0, HINTS_MAX).map(placeHash);
  const nodes = forNodes.slice(0, HINTS_MAX).map(placeHash);
  if (zones.length + nodes.length === 0) return '';
  return String.fromCharCode(zones.length | (nodes.length << 4)) + [...zones, ...nodes].join('');
}

/** Returns an endpoint's own host name, or an empty string if its name is derived from its address. */
function hostOf({ hostname, pod }: Endpoint, podNames: boolean): string {
  return hostLabel(hostname) || (podNames ? hostLabel(pod) : '');
}

/**
 * Returns the host name label for a name, or an empty string if clients would reject it. A dot inside a label has to be
 * escaped, and resolvers reject such names in PTR and SRV records (glibc's res_hnok, Go's dnsmessage).
 */
function hostLabel(name: string): string {
  return HOST_LABEL.test(name) ? name : '';
}

const HOST_LABEL = /^[a-z\d](?:[a-z\d_-]{0,61}[a-z\d])?$/i;

/**
 * Returns a string in which each character is a byte, or an empty string if that is impossible or it is too long. No
 * label or zone in the API is like that.
 */
function latin(text: string): string {
  if (text.length > TEXT_MAX) return '';
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return '';
  return text;
}

/** Encodes IP addresses, each preceded by its length. Malformed ones are omitted. */
export function encodeAddresses(addresses: readonly string[]): string {
  let encoded = '';
  for (const text of addresses) {
    const address = parseAddress(text);
    if (address !== null) encoded += String.fromCharCode(address.length, ...address);
  }
  return flat(encoded);
}

/** Encodes prefixes, each preceded by its number of bits and its address length. Malformed ones are omitted. */
export function encodePrefixes(prefixes: readonly string[]): string {
  let encoded = '';
  for (const text of prefixes) {
    const net = parseNet(text);
    if (net !== null) encoded += String.fromCharCode(net.bits, net.bytes.length, ...net.bytes);
  }
  return flat(encoded);
}

/** Encodes an address as a string of its bytes. */
export function encodeAddress(address: Uint8Array): string {
  return String.fromCharCode(...address);
}

/** The length in characters from which V8 represents concatenations as trees. */
const TREE_MIN = 13;

/** Flattens a string into bytes. */
function flat(encoded: string): string {
  if (encoded.length < TREE_MIN) return encoded;
  return Buffer.from(encoded, 'latin1').toString('latin1');
}

/** Copies the bytes of an encoded string, which is faster than reading it character by character. */
export function copyEncoded(encoded: string, into: Buffer): number {
  return into.write(encoded, 0, 'latin1');
}

/**
 * Reads encoded endpoints without allocating objects. Call `over` to start and `next` to advance; the fields contain
 * the values.
 */
export class EndpointReader {
  #bytes = Buffer.allocUnsafeSlow(4096);
  #at = 0;
  #end = 0;
  #encoded = '';
  /** Offset of the current endpoint, for `seek`. */
  place = 0;
  get bytes(): Uint8Array {
    return this.#bytes;
  }
  named = false;
  addressAt = 0;
  /** 4 or 16, or up to 255 for a domain name. */
  addressLength = 0;
  hostAt = 0;
  /** 0 if the endpoint has no host name, so that its name is derived from its address. */
  hostLength = 0;
  zoneAt = 0;
  zoneLength = 0;
  /** Offset of the zone hints, which are followed by the node hints. */
  hintsAt = 0;
  zoneHints = 0;
  nodeHints = 0;

  over(encoded: string): this {
    if (encoded.length > this.#bytes.length)
      this.#bytes = Buffer.allocUnsafeSlow(2 * encoded.length);
    this.#at = 0;
    this.#end = copyEncoded(encoded, this.#bytes);
    this.#encoded = encoded;
    return this;
  }

  seek(encoded: string, place: number): void {
    if (this.#encoded !== encoded) this.over(encoded);
    this.#at = place;
    this.#end = encoded.length;
    this.next();
    this.#end = 0;
  }

  next(): boolean {
    if (this.#at >= this.#end) return false;
    const bytes = this.#bytes;
    this.place = this.#at;
    const flags = bytes[this.#at]!;
    this.named = (flags & NAME) !== 0;
    this.addressAt = this.#at + (this.named ? 2 : 1);
    this.addressLength = this.named ? bytes[this.#at + 1]! : (flags & V6) !== 0 ? 16 : 4;
    let at = this.addressAt + this.addressLength;
    this.hostLength = 0;
    this.zoneLength = 0;
    if ((flags & HOST) !== 0) {
      this.hostLength = bytes[at]!;
      this.hostAt = at + 1;
      at += 1 + this.hostLength;
    }
    if ((flags & ZONE) !== 0) {
      this.zoneLength = bytes[at]!;
      this.zoneAt = at + 1;
      at += 1 + this.zoneLength;
    }
    this.zoneHints = 0;
    this.nodeHints = 0;
    if ((flags & HINTS) !== 0) {
      this.zoneHints = bytes[at]! & 15;
      this.nodeHints = bytes[at]! >> 4;
      this.hintsAt = at + 1;
      at += 1 + PLACE_BYTES * (this.zoneHints + this.nodeHints);
    }
    this.#at = at;
    return true;
  }

  /** True if the endpoint has a hint for this zone (`placeHash`). */
  isForZone(zone: string): boolean {
    return this.#isHinted(zone, this.hintsAt, this.zoneHints);
  }

  /** True if the endpoint has a hint for this node (`placeHash`). */
  isForNode(node: string): boolean {
    return this.#isHinted(node, this.hintsAt + PLACE_BYTES * this.zoneHints, this.nodeHints);
  }

  #isHinted(place: string, at: number, count: number): boolean {
    for (let rest = place === '' ? 0 : count; rest > 0; rest--, at += PLACE_BYTES) {
      let same = 0;
      while (same < PLACE_BYTES && this.#bytes[at + same] === place.charCodeAt(same)) same++;
      if (same === PLACE_BYTES) return true;
    }
    return false;
  }

  /** True if the endpoint's address is `address[0, length)`. */
  isAt(address: Uint8Array, length: number = address.length): boolean {
    const mayBe = !this.named && this.addressLength === length;
    return mayBe && holdsAt(this.#bytes, this.addressAt, address, length);
  }

  /** A copy of the address, which may be a domain name. */
  get address(): Uint8Array {
    return copyOf(this.#bytes, this.addressAt, this.addressAt + this.addressLength);
  }

  /** The endpoint's label in DNS. It is empty if the endpoint is a domain name that is too long for a label. */
  get host(): string {
    const { addressAt, hostAt } = this;
    if (this.hostLength > 0)
      return this.#bytes.toString('latin1', hostAt, hostAt + this.hostLength);
    if (this.named) return '';
    return addressLabel(printAddress(this.#bytes, addressAt, this.addressLength));
  }
}

/**
 * Encodes an address as a label. Dots and colons become dashes, and a `0` is appended if the label would otherwise end
 * in a dash.
 */
export function addressLabel(address: string): string {
  const label = address.replaceAll(/[.:]/g, '-');
  return label.endsWith('-') ? `${label}0` : label;
}

/** Decodes a label made by `addressLabel`, or returns null for any other label. */
export function labelledAddress(label: string): Uint8Array | null {
  if (label.split('-').length < 3) return null;
  const address = parseAddress(dashedAddress(label));
  return address !== null && addressLabel(printAddress(address)) === label ? address : null;
}

/** `10-0-0-1` → `10.0.0.1`, `fd00--1` → `fd00::1`. */
export function dashedAddress(label: string): string {
  const isV4 = label.split('-').length === 4 && !label.includes('--');
  return label.replaceAll('-', isV4 ? '.' : ':');
}

export function printPorts(ports: readonly ServicePort[]): string {
  return ports
    .map(({ name, protocol, port }) => `${name}/${protocol}/${port}`.toLowerCase())
    .join(',');
}

export interface EndpointPort {
  /** In lower case; empty if the port has no name. */
  readonly name: string;
  readonly protocol: string;
  /** -1 if no port number is declared, in which case there is no SRV record. */
  readonly port: number;
}

const noPorts: readonly EndpointPort[] = [{ name: '', protocol: '', port: -1 }];
/** Maximum number of cached texts; most services have the same few ports. */
const KNOWN_MAX = 4096;
const known = new Map<string, readonly EndpointPort[]>();

/** Parses the ports in a text. Equal texts share one list. */
export function parsePorts(text: string): readonly EndpointPort[] {
  if (text === '') return noPorts;
  let ports = known.get(text);
  if (ports === undefined) {
    if (known.size >= KNOWN_MAX) known.clear();
    ports = text.split(',').map((part) => {
      const [name = '', protocol = '', port = '-1'] = part.split('/');
      return { name, protocol, port: Number(port) };
    });
    known.set(text, ports);
  }
  return ports;
}
