/** Identifies clients by network prefix rather than by address. */
import { printAddress } from '../../base/ip.ts';
import { hashBytes } from '../../base/hash.ts';
import { setting, type PropertySchema } from '../../corefile/properties.ts';
import { integer } from '../../corefile/word-values.ts';
import type { Query } from '../../transport/query.ts';

/**
 * Creates directive properties that set the prefix lengths.
 * @param words names of the properties
 * @param defaults prefix lengths in bits
 */
export function clientPrefixSettings(
  words: readonly [ipv4: string, ipv6: string],
  defaults: readonly [bits4: number, bits6: number],
): { readonly bits4: PropertySchema<number>; readonly bits6: PropertySchema<number> } {
  return {
    bits4: setting(words[0], integer('LENGTH', { min: 1, max: 32 }), {
      default: defaults[0],
      help: 'prefix length of an IPv4 client',
    }),
    bits6: setting(words[1], integer('LENGTH', { min: 1, max: 128 }), {
      default: defaults[1],
      help: 'prefix length of an IPv6 client',
    }),
  };
}

/** A client's address, reduced to a prefix. `read` fills `bytes` up to `length` and allocates no memory. */
export class ClientPrefix {
  /** The address with all bits after the prefix cleared, valid until the next `read`. */
  readonly bytes: Uint8Array = new Uint8Array(16);
  /** 4 or 16. */
  length: 4 | 16 = 4;
  readonly #bits4: number;
  readonly #bits6: number;

  /**
   * @param bits4 prefix length for IPv4, up to 32
   * @param bits6 prefix length for IPv6, up to 128
   */
  constructor(bits4: number, bits6: number) {
    this.#bits4 = bits4;
    this.#bits6 = bits6;
  }

  read({ family, peer, peerAt }: Query): this {
    this.length = family === 4 ? 4 : 16;
    const bits = family === 4 ? this.#bits4 : this.#bits6;
    for (let i = 0; i < this.length; i++) {
      const kept = Math.min(8, Math.max(0, bits - 8 * i));
      this.bytes[i] = peer[peerAt + i]! & (0xff00 >> kept);
    }
    return this;
  }

  /** A hash of the current prefix. */
  get hash(): number {
    return hashBytes(this.bytes, 0, this.length);
  }

  /** Prints the prefix, e.g. `10.1.2.0/24`, or without `/…` if it is a full address. */
  readonly print = (key: Uint8Array): string => {
    const [bits, whole] = key.length === 4 ? [this.#bits4, 32] : [this.#bits6, 128];
    const address = printAddress(key);
    return bits >= whole ? address : `${address}/${bits}`;
  };
}
