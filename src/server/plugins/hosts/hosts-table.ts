/** The hosts table that all threads share. */
import { hashBytes } from '../../base/hash.ts';
import type { Query } from '../../transport/query.ts';

/**
 * All hosts in one block of shared memory. The main thread builds it and every worker reads the same bytes, so
 * switching to a new one costs a worker nothing. For each entry, `data` contains the name, its IPv4 addresses, its IPv6
 * addresses, and the names of its address. `entries` contains FIELDS numbers for each one: the offsets of the name and
 * the addresses, and the numbers of IPv4 addresses, IPv6 addresses and pointers. `slots` is an open hash table of entry
 * numbers + 1. Its size is a power of two, and its hashes are those of `hashOf`.
 */
export interface HostsTable {
  readonly data: Uint8Array;
  readonly entries: Uint32Array;
  readonly slots: Uint32Array;
}

/** Returns how much memory a table uses, in bytes. */
export function bytesOf({ data, entries, slots }: HostsTable): number {
  return data.byteLength + entries.byteLength + slots.byteLength;
}

/** Number of values per entry. */
export const FIELDS = 5;

/** Looks up names without allocating anything. The fields describe the result of `find`. */
export class HostsLookup {
  readonly data: Uint8Array;
  readonly #entries: Uint32Array;
  readonly #slots: Uint32Array;
  /** Entry number, or -1. */
  entry = -1;
  /** True if a wildcard matched. */
  wild = false;
  v4At = 0;
  v4Count = 0;
  v6At = 0;
  v6Count = 0;
  pointersAt = 0;
  pointerCount = 0;

  constructor({ data, entries, slots }: HostsTable) {
    this.data = data;
    this.#entries = entries;
    this.#slots = slots;
  }

  /** Finds the name in the question or, failing that, a wildcard next to it. */
  find({ folded, nameLength }: Query): boolean {
    this.wild = false;
    this.entry = this.#search(folded, 0, nameLength);
    if (this.entry < 0 && nameLength > 1) {
      const after = folded[0]! + 1;
      this.entry = this.#search(folded, after, nameLength);
      this.wild = this.entry >= 0;
    }
    if (this.entry < 0) return false;
    const at = FIELDS * this.entry;
    const entries = this.#entries;
    this.v4At = entries[at + 1]!;
    this.v4Count = entries[at + 2]!;
    this.v6At = this.v4At + 4 * this.v4Count;
    this.v6Count = entries[at + 3]!;
    this.pointersAt = this.v6At + 16 * this.v6Count;
    this.pointerCount = entries[at + 4]!;
    return true;
  }

  /** Searches for the name `bytes[from, end)`, with `*.` prepended unless it is the whole name. */
  #search(bytes: Uint8Array, from: number, end: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    const skipped = from === 0 ? 0 : 2;
    const hash = skipped === 0 ? hashOf(bytes, from, end) : hashBytes(bytes, from, end, STAR);
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot]! - 1;
      if (number < 0) return -1;
      const name = this.#entries[FIELDS * number]!;
      const length = this.#entries[FIELDS * number + 1]! - name;
      if (length !== skipped + end - from) continue;
      if (skipped > 0 && !(this.data[name] === 1 && this.data[name + 1] === 0x2a)) continue;
      if (this.#same(name + skipped, bytes, from, end)) return number;
    }
  }

  #same(at: number, bytes: Uint8Array, from: number, end: number): boolean {
    const { data } = this;
    for (; from < end; from++, at++) if (data[at] !== bytes[from]) return false;
    return true;
  }
}

/** Hashes the name `bytes[from, end)`. A wildcard's hash is derived from that of the name after `*`. */
export function hashOf(bytes: Uint8Array, from: number, end: number): number {
  const isStar = bytes[from] === 1 && bytes[from + 1] === 0x2a;
  return isStar ? hashBytes(bytes, from + 2, end, STAR) : hashBytes(bytes, from, end);
}

/** Represents the label `*` in hashes. */
const STAR = 0x012a;
