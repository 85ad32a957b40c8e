/** IPv4 addresses in an IPv6 prefix (RFC 6052). */
import type { Net } from '../../base/ip.ts';
import { parseName, suffixAt, type WireName } from '../../wire/name.ts';

/** Valid prefix lengths (RFC 6052 section 2.2). */
export const lengths: readonly number[] = [32, 40, 48, 56, 64, 96];

const zone = parseName('ip6.arpa.');
const v4Zone = parseName('in-addr.arpa.');
/** 32 nibbles, each of them a one-byte label. */
const V6_NAME_LENGTH = 64 + zone.length;

/** Embeds IPv4 addresses in an IPv6 prefix (RFC 6052 section 2.2), and extracts them from names. */
export class Prefix {
  readonly #net: Net;
  /** Offsets of the four IPv4 bytes within the sixteen. */
  readonly #places: readonly number[];

  constructor(net: Net) {
    this.#net = net;
    // Byte 8 is skipped because it is always zero, whatever the prefix length.
    const first = net.bits >> 3;
    const around = [0, 1, 2, 3, 4].map((step) => first + step).filter((at) => at !== 8);
    this.#places = around.slice(0, 4);
  }

  /** Converts the IPv4 address at `from[at]` to an IPv6 address and writes it to `out` at `to`. */
  write(from: Uint8Array, at: number, out: Uint8Array, to: number): void {
    const { bytes, bits } = this.#net;
    const whole = bits >> 3;
    for (let i = 0; i < 16; i++) out[to + i] = i < whole ? bytes[i]! : 0;
    for (let i = 0; i < 4; i++) out[to + this.#places[i]!] = from[at + i]!;
  }

  /**
   * Converts the reverse name of an IPv6 address in the prefix to that of the embedded IPv4 address.
   * @param name in lower case and wire form, `length` bytes long
   * @returns null if the address is incomplete or outside the prefix
   */
  reverse(name: Uint8Array, length: number): WireName | null {
    if (length !== V6_NAME_LENGTH || suffixAt(name, zone, length) !== 64) return null;
    const address = new Uint8Array(16);
    for (let i = 0; i < 32; i++) {
      const nibble = name[2 * i] === 1 ? nibbleOf(name[2 * i + 1]!) : -1;
      if (nibble < 0) return null;
      address[15 - (i >> 1)]! |= i % 2 === 0 ? nibble : nibble << 4;
    }
    const { bytes, bits } = this.#net;
    for (let i = 0; i < bits >> 3; i++) if (address[i] !== bytes[i]) return null;
    const labels = this.#places.toReversed().map((at) => String(address[at]));
    return Buffer.concat([...labels.map(labelOf), v4Zone]);
  }
}

function nibbleOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
}

function labelOf(text: string): Uint8Array {
  return Uint8Array.of(text.length, ...Buffer.from(text));
}
