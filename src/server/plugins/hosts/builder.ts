/** Builds the hosts table. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { readUint32 } from '../../base/big-endian.ts';
import { limit, type Limit } from '../../base/limits.ts';
import { sharedBytes, sharedWords } from '../../base/shared-memory.ts';
import { nameLength, printName, type WireName } from '../../wire/name.ts';
import { FIELDS, hashOf, type HostsTable } from './hosts-table.ts';

/** Maximum number of addresses per name, or names per address. This is slightly more than fits into a message. */
const PER_NAME_MAX = 1000;
/**
 * Maximum number of names in a file, including the reverse names of addresses. The largest blocklists have a third of
 * this. Each name uses about 80 bytes while the file is read. The upper bound is more than any file accepted here can
 * contain.
 */
export const namesLimit: Limit = limit({ default: 400_000, min: 1, max: 10_000_000 });

/** Growth factor of a full array. */
const GROWTH = 1.25;

/** The lists for a name: IPv4 addresses, IPv6 addresses and, for a reverse name, the names of its address. */
const V4 = 0;
const V6 = 1;
const POINTER = 2;
const KINDS = [V4, V6, POINTER] as const;
type HostsKind = (typeof KINDS)[number];

/**
 * Accepts names and their data in any order, and builds a table from them. It uses a few arrays of numbers and bytes
 * outside the JavaScript heap, because there may be hundreds of thousands of names.
 */
export class HostsBuilder {
  /** Counted as in CoreDNS, which counts every address of every name, and every name of every address. */
  count = 0;
  readonly #namesMax: number;
  #most: number;
  #full = false;
  /** The names one after another, with the IPv6 addresses in between. */
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(1024);
  #end = 0;
  /** The offset of each name, and the number of its first item + 1. */
  #names: Uint32Array<ArrayBuffer> = new Uint32Array(64);
  #nameCount = 0;
  /**
   * Each item's value and the number of the name's next item + 1, which is shifted by two bits to make room for its
   * kind.
   */
  #items: Uint32Array<ArrayBuffer> = new Uint32Array(64);
  #itemCount = 0;
  readonly #crowded = new Set<number>();
  #slots = sharedWords(32);

  /** @param namesMax maximum number of names that one text may add */
  constructor(namesMax: number = namesLimit.default) {
    this.#namesMax = namesMax;
    this.#most = namesMax;
  }

  beginText(): void {
    this.#most = this.#nameCount + this.#namesMax;
  }

  get full(): boolean {
    return this.#full;
  }

  get crowded(): readonly string[] {
    return Array.from(this.#crowded, (name) => printName(this.#bytes, this.#names[2 * name]!));
  }

  /**
   * Adds an address to a name.
   * @param name in lower case; if its first label is `*`, that matches exactly one label
   * @param reverse the address's reverse name, which gets `name`, or null
   * @returns false if the name limit is reached and one of these is ignored
   */
  add(name: WireName, address: Uint8Array, reverse: WireName | null): boolean {
    const owner = this.#numberOf(name);
    if (owner < 0) return false;
    if (address.length === 4) this.#has(owner, V4, readUint32(address, 0));
    else if (this.#has(owner, V6, this.#end, address)) this.#append(address);
    if (reverse === null) return true;
    const back = this.#numberOf(reverse);
    if (back < 0) return false;
    this.#has(back, POINTER, owner);
    return true;
  }

  build(): HostsTable {
    const count = this.#nameCount;
    const entries = sharedWords(FIELDS * count);
    const counts = [0, 0, 0];
    let size = 0;
    for (let name = 0; name < count; name++) {
      size += this.#lengthOf(name);
      counts.fill(0);
      for (let item = this.#first(name); item >= 0; item = this.#next(item)) {
        const kind = this.#kind(item);
        counts[kind]!++;
        size += kind === V4 ? 4 : kind === V6 ? 16 : this.#lengthOf(this.#value(item));
      }
      entries.set(counts, FIELDS * name + 2);
    }
    const data = sharedBytes(size);
    let at = 0;
    const put = (from: number, length: number): void => {
      for (const end = from + length; from < end; from++) data[at++] = this.#bytes[from]!;
    };
    for (let name = 0; name < count; name++) {
      entries[FIELDS * name] = at;
      put(this.#names[2 * name]!, this.#lengthOf(name));
      entries[FIELDS * name + 1] = at;
      for (const kind of KINDS)
        for (let item = this.#first(name); item >= 0; item = this.#next(item)) {
          if (this.#kind(item) !== kind) continue;
          const value = this.#value(item);
          if (kind === V4)
            for (let shift = 24; shift >= 0; shift -= 8) data[at++] = value >>> shift;
          else if (kind === V6) put(value, 16);
          else put(this.#names[2 * value]!, this.#lengthOf(value));
        }
    }
    return { data, entries, slots: this.#slots };
  }

  /** Frees the memory that was needed only for building, because files may change faster than garbage is collected. */
  close(): void {
    this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(0));
    this.#names = new Uint32Array(this.#names.buffer.transfer(0));
    this.#items = new Uint32Array(this.#items.buffer.transfer(0));
  }

  /** Returns a name's number, assigning one if necessary, or -1 if there are too many names. */
  #numberOf(name: WireName): number {
    const mask = this.#slots.length - 1;
    const hash = hashOf(name, 0, name.length);
    let slot = hash & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const number = this.#slots[slot]! - 1;
      if (holdsAt(this.#bytes, this.#names[2 * number]!, name)) return number;
    }
    if (this.#nameCount >= this.#most) {
      this.#full = true;
      return -1;
    }
    const number = this.#nameCount++;
    this.#names = roomFor(this.#names, 2 * this.#nameCount);
    this.#names[2 * number] = this.#end;
    this.#append(name);
    this.#slots[slot] = number + 1;
    if (2 * this.#nameCount > this.#slots.length) this.#widenSlots();
    return number;
  }

  #widenSlots(): void {
    const slots = sharedWords(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#nameCount; number++) {
      const at = this.#names[2 * number]!;
      const end = at + this.#lengthOf(number);
      let slot = hashOf(this.#bytes, at, end) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }

  /**
   * Adds an item to a name unless it is already there.
   * @returns true if it was added
   */
  #has(name: number, kind: HostsKind, value: number, address?: Uint8Array): boolean {
    this.count++;
    if (this.#crowded.has(name)) return false;
    let last = -1;
    let found = 0;
    for (let item = this.#first(name); item >= 0; item = this.#next(item)) {
      last = item;
      if (this.#kind(item) !== kind) continue;
      const other = this.#value(item);
      if (address === undefined ? other === value : holdsAt(this.#bytes, other, address))
        return false;
      found++;
    }
    if (found >= PER_NAME_MAX) {
      this.#crowded.add(name);
      return false;
    }
    const item = this.#itemCount++;
    this.#items = roomFor(this.#items, 2 * this.#itemCount);
    this.#items[2 * item] = value;
    this.#items[2 * item + 1] = kind;
    if (last < 0) this.#names[2 * name + 1] = item + 1;
    else this.#items[2 * last + 1]! |= (item + 1) << 2;
    return true;
  }

  #first(name: number): number {
    return this.#names[2 * name + 1]! - 1;
  }

  #next(item: number): number {
    return (this.#items[2 * item + 1]! >>> 2) - 1;
  }

  #kind(item: number): number {
    return this.#items[2 * item + 1]! & 3;
  }

  #value(item: number): number {
    return this.#items[2 * item]!;
  }

  #lengthOf(name: number): number {
    return nameLength(this.#bytes, this.#names[2 * name]!);
  }

  #append(bytes: Uint8Array): void {
    const end = this.#end + bytes.length;
    if (end > this.#bytes.length) {
      const size = Math.max(end, this.#bytes.length * GROWTH);
      this.#bytes = new Uint8Array(this.#bytes.buffer.transfer(size));
    }
    this.#bytes.set(bytes, this.#end);
    this.#end = end;
  }
}

function roomFor(numbers: Uint32Array<ArrayBuffer>, length: number): Uint32Array<ArrayBuffer> {
  return length <= numbers.length
    ? numbers
    : new Uint32Array(numbers.buffer.transfer(4 * Math.ceil(length * GROWTH)));
}
