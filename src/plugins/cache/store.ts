/** The entries of a cache: finding, storing and forgetting them. */
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../wire/query.ts';
import { Reply, type ExtendedError } from '../../wire/reply.ts';
import { ChunkLog, type Chunk } from './chunks.ts';
import { clean, hashOf, variantOf } from './entry.ts';
import { HitCounts, larger } from './hits.ts';
import { OffsetTable } from './offsets.ts';

/** The two halves of the cache, each with its own capacity. */
export const SUCCESS = 0;
/** The half of denials: NXDOMAIN, no data, failures. */
export const DENIAL = 1;
/** One of the two halves. */
export type Half = typeof SUCCESS | typeof DENIAL;

/** Type 0 stands for all types: the entry says that the name does not exist. */
const EVERY_TYPE = 0;
const CLASS_MAX = 0x1fff;
const SHARDS = 256;
const SHARD_MIN = 4;
/** Entries of one bucket; a longer chain, which chance does not make, loses its oldest entry. */
const CHAIN_MAX = 48;

/** What is kept about one entry, as it lies in the arrays. */
export interface StoredEntry {
  /** The message, in the chunk that holds it. */
  readonly message: Uint8Array;
  readonly type: number;
  readonly class: number;
  /** DO and CD, as `variantOf` has them. */
  readonly variant: number;
  /** It says that the name does not exist. */
  readonly whole: boolean;
}

/** Bounds of a store, and what it works with. */
export interface StoreParts {
  /** Entries: success, denial. Rounded to 256 shards of at least 4, as CoreDNS does it. */
  readonly capacities: readonly [number, number];
  readonly bytes: number;
  /** Seconds that an entry may be used after its time; 0: not at all. */
  readonly staleSeconds: number;
  readonly preferPositive: boolean;
  /** Whether hits are counted per entry, for prefetch. */
  readonly counting: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The entries of the cache. Everything known about an entry stands in arrays under its slot: an entry that is never hit makes
 * no object, and one that is makes one `Reply` in each second in which it is.
 *
 * All entries of a name lie in one chain, so that one walk sees what is known about the name, whatever the type.
 */
export class Store {
  /** What `look` found: slots, or -1. The denial is the one for the type, or the one for the whole name. */
  denial = -1;
  success = -1;
  readonly evictions: [number, number] = [0, 0];
  readonly counts: [number, number] = [0, 0];
  readonly log: ChunkLog;
  readonly offsets: OffsetTable = new OffsetTable();
  /** Hits per slot, for prefetch. */
  readonly hits: HitCounts;

  readonly #parts: StoreParts;
  readonly #caps: readonly [number, number];
  readonly #perShard: number;
  readonly #buckets: Int32Array;
  readonly #shardCounts = new Int32Array(SHARDS * 2);
  /** The chunk that holds the message, null: the slot is free; and what of it. */
  readonly #bytes: (Uint8Array | null)[] = [];
  #start = new Int32Array(0);
  #size = new Uint16Array(0);
  #rcode = new Uint16Array(0);
  readonly #ttlAt: (Uint16Array | null)[] = [];
  readonly #errors: (readonly ExtendedError[] | null)[] = [];
  /** As it was handed out last. */
  readonly #replies: (Reply | null)[] = [];
  #free = -1;
  #slots = 0;
  #hash = new Int32Array(0);
  #kind = new Int32Array(0);
  #next = new Int32Array(0);
  #ttl = new Int32Array(0);
  #half = new Uint8Array(0);
  #chunk = new Int32Array(0);
  #born = new Float64Array(0);
  #retry = new Float64Array(0);
  /** Answers from each entry, and who made it: a number of whoever stores. */
  #uses = new Uint32Array(0);
  #source = new Uint8Array(0);

  constructor(parts: StoreParts) {
    this.#parts = parts;
    this.#caps = [
      shardCapacity(parts.capacities[SUCCESS]),
      shardCapacity(parts.capacities[DENIAL]),
    ];
    let perShard = 1;
    while (perShard < this.#caps[SUCCESS] + this.#caps[DENIAL]) perShard *= 2;
    this.#perShard = perShard;
    this.#buckets = new Int32Array(SHARDS * perShard).fill(-1);
    this.log = new ChunkLog(parts.bytes);
    this.hits = new HitCounts(parts.counting);
  }

  /** Whether a query can have an entry at all. */
  static keeps(query: Query): boolean {
    return query.type !== EVERY_TYPE && query.class <= CLASS_MAX && query.nameLength > 0;
  }

  /** Finds what is known for the query: sets `denial` and `success`. */
  look(query: Query): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const every = (variant << 29) | (query.class << 16);
    const exact = every | query.type;
    this.denial = -1;
    this.success = -1;
    let nameError = -1;
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0; slot = this.#next[slot]!) {
      if (this.#hash[slot] !== hash) continue;
      const kind = this.#kind[slot]!;
      if (kind === exact) {
        if (!this.#named(slot, query)) continue;
        if (this.#half[slot] === DENIAL) this.denial = slot;
        else this.success = slot;
      } else if (kind === every && this.#named(slot, query)) {
        nameError = slot;
      }
    }
    if (nameError >= 0 && (this.denial < 0 || this.remaining(this.denial, query) <= 0))
      this.denial = nameError;
  }

  /**
   * The entry to answer the query from, or -1. Denials come first, except SERVFAIL, which yields to data; with
   * `prefer_positive` data comes first.
   */
  pick(query: Query): number {
    this.look(query);
    const { denial, success } = this;
    const denies = denial >= 0 && this.usable(denial, query);
    if (success < 0) return denies ? denial : -1;
    const serves = this.usable(success, query);
    if (!denies) return serves ? success : -1;
    if (!serves) return denial;
    return this.#parts.preferPositive || this.#fails(denial) ? success : denial;
  }

  /** Whether the entry may be answered from: fresh, or stale within the limit. */
  usable(slot: number, query: Query): boolean {
    const left = this.remaining(slot, query);
    if (left > 0) return true;
    return -left < this.#parts.staleSeconds && !this.#fails(slot);
  }

  #fails(slot: number): boolean {
    const rcode = this.#rcode[slot]!;
    return rcode !== 0 && rcode !== 3;
  }

  /** Whole seconds left when the query arrived; 0 or less: its time is over. */
  remaining(slot: number, query: Query): number {
    const now = query.arrived > 0 ? query.arrived : this.#parts.clock.now();
    const age = now - this.#born[slot]!;
    return age > 0 ? this.#ttl[slot]! - ((age / 1000) | 0) : this.#ttl[slot]!;
  }

  /** The entry as a reply, with the TTL that it was handed out with last. */
  reply(slot: number): Reply {
    return this.#replies[slot] ?? this.hit(slot, this.#ttl[slot]!);
  }

  /** The stored reply with `seconds` as its TTL: made once for each second in which the entry is hit. */
  hit(slot: number, seconds: number): Reply {
    const known = this.#replies[slot]!;
    if (known !== null && known.ttl === seconds) return known;
    const start = this.#start[slot]!;
    return (this.#replies[slot] = new Reply(
      this.#bytes[slot]!,
      start,
      start + this.#size[slot]!,
      this.#rcode[slot]!,
      'cache',
      this.#ttlAt[slot]!,
      seconds,
      null,
      this.#errors[slot]!,
    ));
  }

  rcode(slot: number): number {
    return this.#rcode[slot]!;
  }

  /** Whether the slot still holds this reply: entries go and slots are used again while somebody waits. */
  holds(slot: number, reply: Reply): boolean {
    return this.#bytes[slot] === reply.bytes && this.#start[slot] === reply.start;
  }

  half(slot: number): Half {
    return this.#half[slot] as Half;
  }

  /** Calls `take` for each entry that has an answer: its message, the kind of client, and whether it is for the whole name. */
  each(take: (slot: number, message: Uint8Array, variant: number, whole: boolean) => void): void {
    for (let slot = 0; slot < this.#slots; slot++) {
      const bytes = this.#bytes[slot] ?? null;
      if (bytes === null || this.#fails(slot) || this.#errors[slot] !== null) continue;
      const start = this.#start[slot]!;
      const kind = this.#kind[slot]!;
      const message = bytes.subarray(start, start + this.#size[slot]!);
      take(slot, message, kind >>> 29, (kind & 0xffff) === EVERY_TYPE);
    }
  }

  /** Slots that have ever been used: their numbers are below. */
  get slots(): number {
    return this.#slots;
  }

  /** What lies in a slot; null: nothing. */
  at(slot: number): StoredEntry | null {
    const bytes = this.#bytes[slot] ?? null;
    if (bytes === null) return null;
    const start = this.#start[slot]!;
    const kind = this.#kind[slot]!;
    return {
      message: bytes.subarray(start, start + this.#size[slot]!),
      type: kind & 0xffff,
      class: (kind >>> 16) & CLASS_MAX,
      variant: kind >>> 29,
      whole: (kind & 0xffff) === EVERY_TYPE,
    };
  }

  /** Where the name of a slot's entry begins, in `bytesAt`; -1: the slot is empty. */
  nameAt(slot: number): number {
    return (this.#bytes[slot] ?? null) === null ? -1 : this.#start[slot]! + HEADER.SIZE;
  }

  /** The chunk that the slot's entry lies in. */
  bytesAt(slot: number): Uint8Array {
    return this.#bytes[slot]!;
  }

  /** Counts an answer from the entry. */
  use(slot: number): void {
    this.#uses[slot]!++;
  }

  /** Answers from the entry so far. */
  uses(slot: number): number {
    return this.#uses[slot]!;
  }

  /** Who made the entry: the number that `from` was given; 0: nobody said. */
  source(slot: number): number {
    return this.#source[slot]!;
  }

  /** Says who made the entry. */
  from(slot: number, source: number): void {
    this.#source[slot] = source;
  }

  /** The TTL that the entry was stored with, seconds. */
  ttl(slot: number): number {
    return this.#ttl[slot]!;
  }

  /** Marks a refresh of this entry as under way (Infinity), or not to be tried again before that time. */
  retryAt(slot: number, at: number): void {
    this.#retry[slot] = at;
  }

  mayRefresh(slot: number, now: number): boolean {
    return now >= this.#retry[slot]!;
  }

  /**
   * Until when (clock's ms) a fresh entry of the name (same class, DO and CD) says that it exists, the longest of them; 0: none
   * does. `half`: entries with data, or without. The entry of the query's own type does not count, except data that is
   * served stale in preference to denials: that counts as long as it may be served.
   */
  vouchedUntil(query: Query, half: Half, now: number): number {
    const { preferPositive, staleSeconds } = this.#parts;
    const shielding = half === SUCCESS && preferPositive;
    let latest = 0;
    this.#family(query, (slot, type) => {
      if (type === EVERY_TYPE || this.#half[slot] !== half || this.#fails(slot)) return;
      if (type === query.type && !shielding) return;
      const end = this.end(slot) + (shielding ? staleSeconds * 1000 : 0);
      if (end > now && end > latest) latest = end;
    });
    return latest;
  }

  /** Entries of the name that say "no data" end at this time, if not before. */
  endBy(query: Query, time: number): void {
    this.#family(query, (slot) => {
      if (this.#half[slot] === DENIAL && this.end(slot) > time)
        this.#born[slot] = time - this.#ttl[slot]! * 1000;
    });
  }

  /** When its time began, clock's ms. */
  born(slot: number): number {
    return this.#born[slot]!;
  }

  /** When its time is over, clock's ms. */
  end(slot: number): number {
    return this.#born[slot]! + this.#ttl[slot]! * 1000;
  }

  /** Forgets the entry that says the name does not exist. */
  admit(query: Query): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const every = (variant << 29) | (query.class << 16) | EVERY_TYPE;
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0;) {
      const following = this.#next[slot]!;
      if (this.#hash[slot] === hash && this.#kind[slot] === every && this.#named(slot, query))
        this.#drop(slot);
      slot = following;
    }
  }

  /** Forgets what says that the name exists. Data that is served stale in preference to denials stays. */
  deny(query: Query): void {
    this.#family(query, (slot, type) => {
      if (type !== EVERY_TYPE && !this.shielded(slot, query)) this.#drop(slot);
    });
  }

  /** Whether the entry is data that is served, perhaps stale, in preference to denials. */
  shielded(slot: number, query: Query): boolean {
    return this.#parts.preferPositive && this.#half[slot] === SUCCESS && this.usable(slot, query);
  }

  remove(slot: number): void {
    this.#drop(slot);
  }

  /** Calls `each` for every entry of the query's name, class, DO and CD. It may drop the entry. */
  #family(query: Query, each: (slot: number, type: number) => void): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const family = (variant << 29) | (query.class << 16);
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0;) {
      const following = this.#next[slot]!;
      const kind = this.#kind[slot]!;
      if (this.#hash[slot] === hash && (kind & ~0xffff) === family && this.#named(slot, query)) {
        each(slot, kind & 0xffff);
      }
      slot = following;
    }
  }

  /**
   * Stores a reply: a copy of its message with AA set, without what belongs to one client.
   * @param ttlAt where the TTLs of the message stand
   * @param rcode the result code to store (NXDOMAIN may have become NOERROR)
   * @param everyType for the whole name rather than the query's type
   * @param born when its time began, clock's ms
   * @returns the slot, or -1 if it does not fit at all
   */
  put(
    query: Query,
    reply: Reply,
    ttlAt: Uint16Array,
    half: Half,
    rcode: number,
    everyType: boolean,
    seconds: number,
    born: number,
  ): number {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const kind = (variant << 29) | (query.class << 16) | (everyType ? EVERY_TYPE : query.type);
    this.#forget(query, hash, kind, half);
    const shard = hash & (SHARDS - 1);
    if (this.#shardCounts[shard * 2 + half]! >= this.#caps[half]) this.#evict(shard, half);
    const chunk = this.#room(reply.size);
    if (chunk === null) return -1;
    const slot = this.#takeSlot();
    const start = this.log.put(chunk, slot, reply.bytes, reply.start, reply.end);
    clean(chunk.bytes, start, query.nameLength, rcode);
    this.#bytes[slot] = chunk.bytes;
    this.#start[slot] = start;
    this.#size[slot] = reply.size;
    this.#rcode[slot] = rcode;
    this.#ttlAt[slot] = ttlAt;
    this.#errors[slot] = reply.errors;
    this.#replies[slot] = null;
    this.#hash[slot] = hash;
    this.#kind[slot] = kind;
    this.#ttl[slot] = seconds;
    this.#half[slot] = half;
    this.#chunk[slot] = chunk.id;
    this.#born[slot] = born;
    this.#retry[slot] = 0;
    this.#uses[slot] = 0;
    this.#source[slot] = 0;
    this.hits.reset(slot);
    this.#link(slot, hash);
    this.#shardCounts[shard * 2 + half]!++;
    this.counts[half]++;
    return slot;
  }

  /** Where space for a message is: evicts the oldest chunk's entries when the limit is reached. */
  #room(size: number): Chunk | null {
    const { log } = this;
    for (let tries = 0; tries < 64; tries++) {
      const chunk = log.room(size);
      if (chunk !== null) {
        // A new one takes in what a sparse one still holds; then look again whether there is room.
        if (chunk.used > 0 || !chunk.shared || !this.#compact(chunk)) return chunk;
        continue;
      }
      const victim = log.victim();
      if (victim === null) return null;
      for (const slot of victim.slots) {
        if (this.#bytes[slot] === null || this.#chunk[slot] !== victim.id) continue;
        this.evictions[this.#half[slot] as Half]++;
        this.#drop(slot);
      }
    }
    return null;
  }

  /** Moves what is left of a sparse chunk into `fresh`, whole or not at all. */
  #compact(fresh: Chunk): boolean {
    const { sparse } = this.log;
    if (sparse === null) return false;
    for (const slot of sparse.slots) {
      const bytes = this.#bytes[slot] ?? null;
      if (bytes === null || this.#chunk[slot] !== sparse.id) continue;
      const start = this.#start[slot]!;
      const size = this.#size[slot]!;
      this.#start[slot] = this.log.put(fresh, slot, bytes, start, start + size);
      this.#bytes[slot] = fresh.bytes;
      this.#replies[slot] = null;
      this.#chunk[slot] = fresh.id;
      this.log.drop(sparse.id, size);
    }
    return true;
  }

  #forget(query: Query, hash: number, kind: number, half: Half): void {
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0; slot = this.#next[slot]!) {
      if (this.#hash[slot] !== hash || this.#kind[slot] !== kind || this.#half[slot] !== half)
        continue;
      if (!this.#named(slot, query)) continue;
      this.#drop(slot);
      return;
    }
  }

  /** A random entry of this half and shard goes. */
  #evict(shard: number, half: Half): void {
    const perShard = this.#perShard;
    const first = this.#parts.random.integer(perShard);
    for (let i = 0; i < perShard; i++) {
      const bucket = shard * perShard + ((first + i) & (perShard - 1));
      for (let slot = this.#buckets[bucket]!; slot >= 0; slot = this.#next[slot]!) {
        if (this.#half[slot] !== half) continue;
        this.evictions[half]++;
        this.#drop(slot);
        return;
      }
    }
  }

  #link(slot: number, hash: number): void {
    const bucket = this.#bucket(hash);
    this.#next[slot] = this.#buckets[bucket]!;
    this.#buckets[bucket] = slot;
    let length = 1;
    for (let at = this.#next[slot]!; at >= 0; at = this.#next[at]!) {
      if (++length <= CHAIN_MAX) continue;
      this.evictions[this.#half[at] as Half]++;
      this.#drop(at);
      return;
    }
  }

  #drop(slot: number): void {
    const hash = this.#hash[slot]!;
    const bucket = this.#bucket(hash);
    let before = -1;
    for (let at = this.#buckets[bucket]!; at !== slot; at = this.#next[at]!) before = at;
    if (before < 0) this.#buckets[bucket] = this.#next[slot]!;
    else this.#next[before] = this.#next[slot]!;
    const half = this.#half[slot] as Half;
    this.#shardCounts[(hash & (SHARDS - 1)) * 2 + half]!--;
    this.counts[half]--;
    this.log.drop(this.#chunk[slot]!, this.#size[slot]!);
    this.#bytes[slot] = null;
    this.#replies[slot] = null;
    this.#next[slot] = this.#free;
    this.#free = slot;
  }

  #bucket(hash: number): number {
    return (hash & (SHARDS - 1)) * this.#perShard + ((hash >>> 8) & (this.#perShard - 1));
  }

  #named(slot: number, query: Query): boolean {
    const bytes = this.#bytes[slot]!;
    const start = this.#start[slot]!;
    const { folded, nameLength } = query;
    for (let i = 0, at = start + HEADER.SIZE; i < nameLength; i++, at++) {
      if (bytes[at] !== folded[i]) return false;
    }
    return true;
  }

  #takeSlot(): number {
    const slot = this.#free;
    if (slot >= 0) {
      this.#free = this.#next[slot]!;
      return slot;
    }
    if (this.#slots === this.#hash.length) this.#grow();
    return this.#slots++;
  }

  #grow(): void {
    const size = Math.max(256, this.#hash.length * 2);
    this.#start = larger(this.#start, new Int32Array(size));
    this.#size = larger(this.#size, new Uint16Array(size));
    this.#rcode = larger(this.#rcode, new Uint16Array(size));
    this.#hash = larger(this.#hash, new Int32Array(size));
    this.#kind = larger(this.#kind, new Int32Array(size));
    this.#next = larger(this.#next, new Int32Array(size));
    this.#ttl = larger(this.#ttl, new Int32Array(size));
    this.#half = larger(this.#half, new Uint8Array(size));
    this.#chunk = larger(this.#chunk, new Int32Array(size));
    this.#born = larger(this.#born, new Float64Array(size));
    this.#retry = larger(this.#retry, new Float64Array(size));
    this.#uses = larger(this.#uses, new Uint32Array(size));
    this.#source = larger(this.#source, new Uint8Array(size));
    this.hits.grow(size);
  }
}

/** Entries per shard. */
export function shardCapacity(capacity: number): number {
  return Math.max(SHARD_MIN, Math.floor(capacity / SHARDS));
}
