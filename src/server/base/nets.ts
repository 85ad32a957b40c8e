/** Checks whether any of many prefixes contains an address. */
import type { Net } from './ip.ts';

/** A set of prefixes, stored as sorted ranges. Lookup is a binary search that allocates no memory. */
export class Nets {
  readonly #v4: Ranges;
  readonly #v6: Ranges;

  constructor(nets: readonly Net[]) {
    this.#v4 = new Ranges(nets, 4);
    this.#v6 = new Ranges(nets, 16);
  }

  /** @param length 4 or 16 */
  holds(address: Uint8Array, at: number, length: 4 | 16): boolean {
    return (length === 4 ? this.#v4 : this.#v6).hold(address, at);
  }
}

/** One family's address ranges: the first and last address of each, in ascending order, disjoint and not adjacent. */
class Ranges {
  readonly #bytes: Uint8Array;
  readonly #length: number;
  readonly #count: number;

  constructor(nets: readonly Net[], length: number) {
    const all = nets
      .filter(({ bytes }) => bytes.length === length)
      .map((net) => ({ first: edge(net, 0), last: edge(net, 0xff) }))
      .toSorted((a, b) => Buffer.compare(a.first, b.first));
    const merged: { first: Uint8Array; last: Uint8Array }[] = [];
    for (const range of all) {
      const before = merged.at(-1);
      if (before === undefined || Buffer.compare(range.first, before.last) > 0) merged.push(range);
      else if (Buffer.compare(range.last, before.last) > 0) before.last = range.last;
    }
    this.#bytes = Buffer.concat(merged.flatMap(({ first, last }) => [first, last]));
    this.#length = length;
    this.#count = merged.length;
  }

  hold(address: Uint8Array, at: number): boolean {
    let low = 0;
    let high = this.#count - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.#compare(address, at, 2 * middle) < 0) high = middle - 1;
      else if (this.#compare(address, at, 2 * middle + 1) > 0) low = middle + 1;
      else return true;
    }
    return false;
  }

  #compare(address: Uint8Array, at: number, edgeNumber: number): number {
    const from = edgeNumber * this.#length;
    for (let i = 0; i < this.#length; i++) {
      const difference = address[at + i]! - this.#bytes[from + i]!;
      if (difference !== 0) return difference;
    }
    return 0;
  }
}

/** Returns the prefix's address with all host bits set from `fill`: 0 for the first address, 255 for the last. */
function edge({ bytes, bits }: Net, fill: 0 | 0xff): Uint8Array {
  return bytes.map((byte, index) => {
    const keep = Math.min(8, Math.max(0, bits - 8 * index));
    const mask = (0xff00 >> keep) & 0xff;
    return (byte & mask) | (fill & ~mask);
  });
}
