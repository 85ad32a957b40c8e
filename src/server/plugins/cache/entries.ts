/** A cache's entries, as parallel arrays indexed by slot. */
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { Reply, type ExtendedError } from '../../wire/reply.ts';
import { larger } from '../../base/copy-bytes.ts';
import { HitCounts } from './hits.ts';

/** The two halves of the cache, each with its own capacity. */
export const SUCCESS = 0;
/** The half for denials: NXDOMAIN, no data, failures. */
export const DENIAL = 1;
export type Half = typeof SUCCESS | typeof DENIAL;

/** Type 0 stands for all types, in entries that record that a name does not exist. */
export const EVERY_TYPE = 0;
/** Highest class that is cached, because class, type and variant share 32 bits. */
export const CLASS_MAX = 0x1fff;

export interface StoredEntry {
  readonly message: Uint8Array;
  readonly type: number;
  readonly class: number;
  /** DO and CD, encoded by `variantOf`. */
  readonly variant: number;
  /** True if the entry records that its name does not exist. */
  readonly whole: boolean;
}

export interface CacheStoreParts {
  /** Maximum number of success and denial entries, rounded to 256 shards of at least 4 as in CoreDNS. */
  readonly capacities: readonly [number, number];
  readonly bytes: number;
  /** Number of seconds for which an expired entry may be used; 0 disables this. */
  readonly staleSeconds: number;
  readonly preferPositive: boolean;
  /** True if hits are counted for each entry, as prefetch requires. */
  readonly counting: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Entries by slot, in parallel arrays. Entries that are never hit need no object; others create one `Reply` for each
 * second with a hit. `Store` finds the slot for a query.
 */
export abstract class Entries {
  readonly hits: HitCounts;
  protected readonly parts: CacheStoreParts;
  /** The message's chunk, or null for a free slot, and its position in that chunk. */
  protected readonly messages: (Uint8Array | null)[] = [];
  protected starts: Int32Array = new Int32Array(0);
  protected sizes: Uint16Array = new Uint16Array(0);
  protected rcodes: Uint16Array = new Uint16Array(0);
  protected readonly ttlPlaces: (Uint16Array | null)[] = [];
  protected readonly extendedErrors: (readonly ExtendedError[] | null)[] = [];
  protected readonly replies: (Reply | null)[] = [];
  /** Number of slots ever used, and the first free one; `nexts` links to the others. */
  protected used = 0;
  protected free = -1;
  protected hashes: Int32Array = new Int32Array(0);
  protected kinds: Int32Array = new Int32Array(0);
  /** The next slot in the same chain, or -1 at the end. */
  protected nexts: Int32Array = new Int32Array(0);
  protected ttls: Int32Array = new Int32Array(0);
  protected halves: Uint8Array = new Uint8Array(0);
  protected chunks: Int32Array = new Int32Array(0);
  protected births: Float64Array = new Float64Array(0);
  protected retries: Float64Array = new Float64Array(0);
  /** Counts an entry's answers and stores the entry's source. */
  protected counted: Uint32Array = new Uint32Array(0);
  protected sources: Uint8Array = new Uint8Array(0);
  /** The value of `counted` when the entry last escaped eviction. */
  protected spared: Uint32Array = new Uint32Array(0);

  constructor(parts: CacheStoreParts) {
    this.parts = parts;
    this.hits = new HitCounts(parts.counting);
  }

  /** True if the entry may be served, either fresh or stale within the limit. */
  usable(slot: number, query: Query): boolean {
    const left = this.remaining(slot, query);
    if (left > 0) return true;
    return -left < this.parts.staleSeconds && !this.fails(slot);
  }

  protected fails(slot: number): boolean {
    const rcode = this.rcodes[slot]!;
    return rcode !== 0 && rcode !== 3;
  }

  /** Seconds left when the query arrived; 0 or less if the entry has expired. */
  remaining(slot: number, query: Query): number {
    const now = query.arrived > 0 ? query.arrived : this.parts.clock.now();
    const age = now - this.births[slot]!;
    return age > 0 ? this.ttls[slot]! - ((age / 1000) | 0) : this.ttls[slot]!;
  }

  reply(slot: number): Reply {
    return this.replies[slot] ?? this.hit(slot, this.ttls[slot]!);
  }

  /** Returns the stored reply with `seconds` as its TTL. It is built once for each second in which the entry is hit. */
  hit(slot: number, seconds: number): Reply {
    const known = this.replies[slot]!;
    if (known !== null && known.ttl === seconds) return known;
    const start = this.starts[slot]!;
    return (this.replies[slot] = new Reply(
      this.messages[slot]!,
      start,
      start + this.sizes[slot]!,
      this.rcodes[slot]!,
      'cache',
      { ttlAt: this.ttlPlaces[slot]!, ttl: seconds, errors: this.extendedErrors[slot]! },
    ));
  }

  rcode(slot: number): number {
    return this.rcodes[slot]!;
  }

  /** True if the slot still contains this reply. While a query waits, entries may be removed and slots reused. */
  holds(slot: number, reply: Reply): boolean {
    return this.messages[slot] === reply.bytes && this.starts[slot] === reply.start;
  }

  half(slot: number): Half {
    return this.halves[slot] as Half;
  }

  /** Calls `take` for each usable entry with its message, client kind, and whether the entry covers the whole name. */
  each(take: (slot: number, message: Uint8Array, variant: number, whole: boolean) => void): void {
    for (let slot = 0; slot < this.used; slot++) {
      const bytes = this.messages[slot] ?? null;
      if (bytes === null || this.fails(slot) || this.extendedErrors[slot] !== null) continue;
      const start = this.starts[slot]!;
      const kind = this.kinds[slot]!;
      const message = bytes.subarray(start, start + this.sizes[slot]!);
      take(slot, message, kind >>> 29, (kind & 0xffff) === EVERY_TYPE);
    }
  }

  /** Upper bound of the slot numbers used so far. */
  get slots(): number {
    return this.used;
  }

  /** Returns the entry in a slot, or null if the slot is free. */
  at(slot: number): StoredEntry | null {
    const bytes = this.messages[slot] ?? null;
    if (bytes === null) return null;
    const start = this.starts[slot]!;
    const kind = this.kinds[slot]!;
    return {
      message: bytes.subarray(start, start + this.sizes[slot]!),
      type: kind & 0xffff,
      class: (kind >>> 16) & CLASS_MAX,
      variant: kind >>> 29,
      whole: (kind & 0xffff) === EVERY_TYPE,
    };
  }

  /** Offset in `bytesAt` of the name in a slot's entry, or -1 if the slot is empty. */
  nameAt(slot: number): number {
    return (this.messages[slot] ?? null) === null ? -1 : this.starts[slot]! + HEADER.SIZE;
  }

  bytesAt(slot: number): Uint8Array {
    return this.messages[slot]!;
  }

  use(slot: number): void {
    this.counted[slot]!++;
  }

  uses(slot: number): number {
    return this.counted[slot]!;
  }

  /** Number of the entry's source, as passed in `from`; 0 if unknown. */
  source(slot: number): number {
    return this.sources[slot]!;
  }

  from(slot: number, source: number): void {
    this.sources[slot] = source;
  }

  /** TTL the entry was stored with, in seconds. */
  ttl(slot: number): number {
    return this.ttls[slot]!;
  }

  /** Sets the earliest time for the next refresh; Infinity means that one is in progress. */
  retryAt(slot: number, at: number): void {
    this.retries[slot] = at;
  }

  mayRefresh(slot: number, now: number): boolean {
    return now >= this.retries[slot]!;
  }

  /** Creation time in clock ms. */
  born(slot: number): number {
    return this.births[slot]!;
  }

  /** Expiry time in clock ms. */
  end(slot: number): number {
    return this.births[slot]! + this.ttls[slot]! * 1000;
  }

  protected takeSlot(): number {
    const slot = this.free;
    if (slot >= 0) {
      this.free = this.nexts[slot]!;
      return slot;
    }
    if (this.used === this.hashes.length) this.#grow();
    return this.used++;
  }

  #grow(): void {
    const size = Math.max(256, this.hashes.length * 2);
    this.starts = larger(this.starts, new Int32Array(size));
    this.sizes = larger(this.sizes, new Uint16Array(size));
    this.rcodes = larger(this.rcodes, new Uint16Array(size));
    this.hashes = larger(this.hashes, new Int32Array(size));
    this.kinds = larger(this.kinds, new Int32Array(size));
    this.nexts = larger(this.nexts, new Int32Array(size));
    this.ttls = larger(this.ttls, new Int32Array(size));
    this.halves = larger(this.halves, new Uint8Array(size));
    this.chunks = larger(this.chunks, new Int32Array(size));
    this.births = larger(this.births, new Float64Array(size));
    this.retries = larger(this.retries, new Float64Array(size));
    this.counted = larger(this.counted, new Uint32Array(size));
    this.sources = larger(this.sources, new Uint8Array(size));
    this.spared = larger(this.spared, new Uint32Array(size));
    this.hits.grow(size);
  }
}
