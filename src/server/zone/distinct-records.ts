import { hashBytes } from '../base/hash.ts';
import { TYPE } from '../wire/iana.ts';
import { GrowingNumbers, type GrowingBytes } from './growing.ts';

/**
 * An RRset's records without duplicates (RFC 2181, section 5). In a builder's log, each has a type, TTL, length and
 * data.
 */
export class DistinctRecords {
  readonly #log: GrowingBytes;
  /** Their positions. */
  readonly #list = new GrowingNumbers();
  /**
   * Positions by hash. If several records have the same hash, only one is tracked, and the others may be duplicates.
   */
  #known: Map<number, number> | null = null;

  constructor(log: GrowingBytes) {
    this.#log = log;
  }

  get size(): number {
    return this.#list.length;
  }

  clear(): void {
    this.#list.length = 0;
    this.#known = null;
  }

  /** @returns true if it is new */
  add(at: number): boolean {
    const list = this.#list;
    if (list.length < FEW) {
      for (let i = 0; i < list.length; i++) if (this.#isSame(list.at(i), at)) return false;
    } else {
      this.#known ??= new Map(Array.from(list.written, (one) => [this.#hash(one), one]));
      const hash = this.#hash(at);
      const other = this.#known.get(hash);
      if (other === undefined) this.#known.set(hash, at);
      else if (this.#isSame(other, at)) return false;
    }
    list.push(at);
    return true;
  }

  /** Writes the number of records, their total size, and their data, or just the number if there are none. */
  pack(to: GrowingBytes): void {
    const list = this.#list;
    to.varint(list.length);
    if (list.length === 0) return;
    let size = 0;
    for (let i = 0; i < list.length; i++) {
      const length = this.#length(list.at(i));
      size += length + (length < 0x80 ? 1 : length < 0x4000 ? 2 : 3);
    }
    to.varint(size);
    for (let i = 0; i < list.length; i++) {
      const at = list.at(i);
      to.varint(this.#length(at));
      to.copy(this.#log.bytes, at + DATA, this.#length(at));
    }
  }

  #length(at: number): number {
    return this.#log.readU16(at + LENGTH);
  }

  #isSame(a: number, b: number): boolean {
    const { bytes } = this.#log;
    const length = this.#length(a);
    if (length !== this.#length(b)) return false;
    for (let i = DATA; i < DATA + length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
    return true;
  }

  #hash(at: number): number {
    return hashBytes(this.#log.bytes, at + DATA, at + DATA + this.#length(at)) & 0x3fffffff;
  }
}

/** Offset in the log of a record's length and data. */
const LENGTH = 6;
const DATA = 8;
/** Up to this many records are compared one by one. */
const FEW = 8;

/** Returns the type of the RRset that a record is in. Signatures belong to the type that they cover. */
export function setOf(log: GrowingBytes, at: number): number {
  const type = log.readU16(at);
  return type === TYPE.RRSIG ? log.readU16(at + DATA) : type;
}

/**
 * Returns a sort key that orders records by the type of their RRset and puts signatures after the records that they
 * cover.
 */
export function placeOf(log: GrowingBytes, at: number): number {
  return 2 * setOf(log, at) + (log.readU16(at) === TYPE.RRSIG ? 1 : 0);
}
