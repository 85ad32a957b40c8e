/** Finds endpoints in a slice by host name or address without reading all of them. */
import { hashMapped } from '../../../base/hash.ts';
import { LOWER } from '../../../wire/name.ts';
import { EndpointReader } from './endpoint-encoding.ts';

export interface IndexedSlice {
  readonly endpoints: string;
  /** Created by the first query that needs it. Never updated, because slices are immutable. */
  index: EndpointIndex | null;
}

/** The kinds of addresses in a slice, as bit flags. */
export const FAMILY = { V4: 1, V6: 2, NAME: 4 } as const;

/** Returns the flag for the reader's current endpoint. */
export function familyOf({ named, addressLength }: EndpointReader): number {
  return named ? FAMILY.NAME : addressLength === 4 ? FAMILY.V4 : FAMILY.V6;
}

const reader = new EndpointReader();

/** Hashes a label or an address without regard to ASCII case. */
export function endpointHash(bytes: Uint8Array, at: number, length: number): number {
  return hashMapped(bytes, at, length, LOWER, folded);
}

const folded = new Uint8Array(256);

/**
 * Maps hashes of the host names and addresses in a slice to endpoint offsets. The table uses 16 to 32 bytes per
 * endpoint.
 */
export class EndpointIndex {
  /** Bit flags of `FAMILY`. */
  readonly families: number;
  /** Address families in which some endpoint has no zone hint, as `FAMILY` flags. */
  readonly unzoned: number;
  /** The same for node hints. */
  readonly unnoded: number;
  /** Pairs of a hash and an offset + 1, where 0 marks a free slot. */
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

  /** Returns the offset of the first endpoint with this hash, to be passed to `EndpointReader.seek`, or -1. */
  first(hash: number): number {
    this.#hash = hash;
    this.#slot = hash & this.#mask;
    return this.#find();
  }

  /** Returns the next offset for the hash that was passed to `first`, or -1. */
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
