/** Finds endpoints of a slice by host name or address, without reading all of them. */
import { hashMapped } from '../../../base/hash.ts';
import { LOWER } from '../../../wire/name.ts';
import { EndpointReader } from './endpoint-encoding.ts';

export interface IndexedSlice {
  readonly endpoints: string;
  /** Made with the first query that needs it; a slice never changes. */
  index: EndpointIndex | null;
}

/** The kinds of addresses in a slice, as bits. */
export const FAMILY = { V4: 1, V6: 2, NAME: 4 } as const;

/** The bit of the endpoint that the reader is at. */
export function familyOf({ named, addressLength }: EndpointReader): number {
  return named ? FAMILY.NAME : addressLength === 4 ? FAMILY.V4 : FAMILY.V6;
}

const reader = new EndpointReader();

/** The hash of a label or an address: ASCII case does not count. */
export function endpointHash(bytes: Uint8Array, at: number, length: number): number {
  return hashMapped(bytes, at, length, LOWER, folded);
}

const folded = new Uint8Array(256);

/**
 * The places of a slice's endpoints by the hash of their host name and of their address, in a table
 * of numbers: 16 to 32 bytes an endpoint.
 */
export class EndpointIndex {
  /** Bits of `FAMILY`. */
  readonly families: number;
  /** Families that have an endpoint without a hint for a zone, as bits of `FAMILY`. */
  readonly unzoned: number;
  /** The same without a hint for a node. */
  readonly unnoded: number;
  /** Pairs of hash and place + 1; a place of 0 is a free slot. */
  readonly #table: Int32Array;
  readonly #mask: number;
  #hash = 0;
  #slot = 0;

  constructor(endpoints: string) {
    let families = 0;
    let unzoned = 0;
    let unnoded = 0;
    let keys = 0;
    for (reader.over(endpoints); reader.next();) {
      const family = familyOf(reader);
      families |= family;
      if (reader.zoneHints === 0) unzoned |= family;
      if (reader.nodeHints === 0) unnoded |= family;
      keys += 2;
    }
    let size = 4;
    while (size < 2 * keys) size *= 2;
    this.families = families;
    this.unzoned = unzoned;
    this.unnoded = unnoded;
    this.#mask = size - 1;
    this.#table = new Int32Array(2 * size);
    for (reader.over(endpoints); reader.next();) {
      const { bytes, hostAt, hostLength, addressAt, addressLength, place } = reader;
      if (hostLength > 0) this.#add(endpointHash(bytes, hostAt, hostLength), place);
      if (!reader.named) this.#add(endpointHash(bytes, addressAt, addressLength), place);
    }
  }

  /** The place of the first endpoint with this hash, for `EndpointReader.seek`; -1: there is none. */
  first(hash: number): number {
    this.#hash = hash;
    this.#slot = hash & this.#mask;
    return this.#find();
  }

  /** The next one with the hash that `first` was called with; -1: there is none. */
  next(): number {
    this.#slot = (this.#slot + 1) & this.#mask;
    return this.#find();
  }

  #find(): number {
    const table = this.#table;
    for (; table[2 * this.#slot + 1] !== 0; this.#slot = (this.#slot + 1) & this.#mask)
      if (table[2 * this.#slot] === this.#hash) return table[2 * this.#slot + 1]! - 1;
    return -1;
  }

  #add(hash: number, place: number): void {
    let slot = hash & this.#mask;
    while (this.#table[2 * slot + 1] !== 0) slot = (slot + 1) & this.#mask;
    this.#table[2 * slot] = hash;
    this.#table[2 * slot + 1] = place + 1;
  }
}

export function indexOf(slice: IndexedSlice): EndpointIndex {
  return (slice.index ??= new EndpointIndex(slice.endpoints));
}
