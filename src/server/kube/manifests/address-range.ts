import { FIXED_HASH_START, nextFixedHash } from '../../base/fixed-hash.ts';
import { parseAddress, parseNet, printAddress, type Net } from '../../base/ip.ts';

/**
 * Assigns addresses from a range by name. The same name gets the same address in every run, regardless of which other
 * names there are. If two names hash to the same address, the first keeps it while the process runs.
 */
export class AddressRange {
  readonly #net: Net;
  /** Number of usable addresses. In a huge range, only the first 2^24 are used. */
  readonly #size: number;
  readonly #held = new Map<string, string>();
  #next = new Map<string, string>();
  #taken = new Set<string>();
  /** All addresses are in use until this round ends. */
  #full = false;

  /** @param range in CIDR form, with at least 4 addresses */
  constructor(range: string) {
    this.#net = parseNet(range)!;
    this.#size = 2 ** Math.min(24, this.#net.bytes.length * 8 - this.#net.bits);
  }

  /** Starts a round. `fixed` are explicitly chosen addresses, which are never assigned to another name. */
  begin(fixed: Iterable<string>): void {
    const chosen = new Set(fixed);
    this.#taken = new Set(chosen);
    this.#next = new Map();
    this.#full = false;
    for (const [name, address] of this.#held) {
      // Addresses that are already assigned stay reserved until the end of the round, so that no new name gets one.
      if (chosen.has(address)) this.#held.delete(name);
      else this.#taken.add(address);
    }
  }

  /** Ends the round. Names that were not requested during it lose their address. */
  end(): void {
    this.#held.clear();
    for (const [name, address] of this.#next) this.#held.set(name, address);
  }

  /**
   * Returns the address for `name`, or null if the range is exhausted. `place` requests the address at this offset in
   * the range.
   */
  take(name: string, place?: number): string | null {
    const held = this.#next.get(name) ?? this.#held.get(name);
    if (held !== undefined) {
      this.#next.set(name, held);
      return held;
    }
    if (this.#full && place === undefined) return null;
    // The first and last addresses are reserved for the network itself.
    const usable = this.#size - 2;
    const start = place === undefined ? hashOf(name) % usable : place - 1;
    for (let step = 0; step < usable; step++) {
      const offset = 1 + ((start + step) % usable);
      if (offset !== place && reservedPlaces.includes(offset) && usable > 16) continue;
      const address = this.#at(offset);
      if (this.#taken.has(address)) continue;
      this.#taken.add(address);
      this.#next.set(name, address);
      return address;
    }
    if (place === undefined) this.#full = true;
    return null;
  }

  #at(offset: number): string {
    const bytes = Uint8Array.from(this.#net.bytes);
    maskHost(bytes, this.#net.bits);
    return printAddress(plus(bytes, offset));
  }
}

/** The offset at which clusters customarily place the service `kubernetes`. */
export const API_SERVER_PLACE = 1;
/** The offset at which clusters customarily place `kube-dns`. */
export const DNS_PLACE = 10;
const reservedPlaces = [API_SERVER_PLACE, DNS_PLACE];

/**
 * Parses a list such as `172.17.0.4-172.17.0.6, fd00::4`, which may contain addresses, first-last spans and CIDR
 * ranges. The maximum is 65 536 addresses. Returns null if it is malformed.
 */
export function parseSpans(text: string): string[] | null {
  const found: string[] = [];
  for (const part of text.split(',').map((piece) => piece.trim())) {
    const net = part.includes('/') ? parseNet(part) : null;
    let first: Uint8Array | null;
    let count: number;
    if (part.includes('/')) {
      if (net === null) return null;
      first = Uint8Array.from(net.bytes);
      maskHost(first, net.bits);
      count = 2 ** (net.bytes.length * 8 - net.bits);
    } else {
      const [from, to = from] = part.split('-').map((end) => parseAddress(end.trim()));
      if (!from || !to || from.length !== to.length) return null;
      first = from;
      count = distance(from, to) + 1;
    }
    if (!(count >= 1) || found.length + count > SPAN_MAX) return null;
    for (let i = 0; i < count; i++) found.push(printAddress(plus(first, i)));
  }
  return found;
}

/** Maximum number of addresses in one span. Manifests need only a few. */
const SPAN_MAX = 65_536;

function maskHost(bytes: Uint8Array, bits: number): void {
  for (let bit = bits; bit < bytes.length * 8; bit++) bytes[bit >> 3]! &= ~(0x80 >> (bit & 7));
}

function plus(bytes: Uint8Array, offset: number): Uint8Array {
  const sum = Uint8Array.from(bytes);
  let carry = offset;
  for (let i = sum.length - 1; i >= 0 && carry > 0; i--) {
    const value = sum[i]! + carry;
    sum[i] = value & 0xff;
    carry = Math.floor(value / 256);
  }
  return sum;
}

/** Returns the distance from `from` to `to`, which is negative or infinite if they cannot be compared. */
function distance(from: Uint8Array, to: Uint8Array): number {
  let value = 0;
  for (let i = 0; i < from.length; i++) value = value * 256 + (to[i]! - from[i]!);
  return value;
}

/**
 * Returns a hash that is the same in every run. A final mix ensures that names differing in one digit do not end up
 * adjacent.
 */
export function hashOf(text: string): number {
  let hash = FIXED_HASH_START;
  for (let i = 0; i < text.length; i++) hash = nextFixedHash(hash, text.charCodeAt(i));
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return hash >>> 0;
}
