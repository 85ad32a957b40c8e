/** IPv4 addresses in an IPv6 prefix (RFC 6052). */
import type { Net } from '../../base/ip.ts';
import { parseName, type WireName } from '../../wire/name.ts';
import { ReverseReader } from '../../wire/reverse-name.ts';

/** Valid prefix lengths (RFC 6052 section 2.2). */
export const lengths: readonly number[] = [32, 40, 48, 56, 64, 96];

const v4Zone = parseName('in-addr.arpa.');
const reader = new ReverseReader();

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
    if (reader.read(name, length) !== 'address' || reader.length !== 16) return null;
    const { address } = reader;
    const { bytes, bits } = this.#net;
    for (let i = 0; i < bits >> 3; i++) if (address[i] !== bytes[i]) return null;
    const labels = this.#places.toReversed().map((at) => String(address[at]));
    return Buffer.concat([...labels.map(labelOf), v4Zone]);
  }
}

function labelOf(text: string): Uint8Array {
  return Uint8Array.of(text.length, ...Buffer.from(text));
}
