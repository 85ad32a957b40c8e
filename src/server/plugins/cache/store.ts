/** Finds, stores and removes a cache's entries; the data itself is in `entries.ts`. */
import { droppedShared } from '../../runtime/memory-policy.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { ChunkLog, type ReplyChunk } from './chunks.ts';
import {
  CLASS_MAX,
  DENIAL,
  Entries,
  EVERY_TYPE,
  SUCCESS,
  type Half,
  type CacheStoreParts,
} from './entries.ts';
import { clean, hashOf, variantOf } from './entry.ts';
import { OffsetTable } from './offsets.ts';

const SHARDS = 256;
const SHARD_MIN = 4;
/** Size of a small message in bytes; if all messages are smaller, some buckets contain two. */
const MESSAGE_USUAL = 64;
/** Maximum number of entries in a bucket. A longer chain cannot be chance, so its oldest entry is removed. */
const CHAIN_MAX = 48;

/** Number of entries to examine when looking for one without recent hits. */
const TRIES = 16;

export interface StoredAs {
  readonly ttlAt: Uint16Array;
  /** The result code to store, which differs if NXDOMAIN was turned into NOERROR. */
  readonly rcode: number;
  /** True if the entry covers the whole name rather than just the query's type. */
  readonly everyType: boolean;
  readonly seconds: number;
  /** Creation time in clock ms. */
  readonly born: number;
}

/**
 * The cache's entries, found by name, type, class and client kind. All entries for a name are in the same chain, so a
 * single walk finds all of its types.
 */
export class Store extends Entries {
  /** Results of `look`, as slots or -1. The denial is either for the query's type or for the whole name. */
  denial = -1;
  success = -1;
  readonly evictions: [number, number] = [0, 0];
  readonly counts: [number, number] = [0, 0];
  readonly log: ChunkLog;
  readonly offsets: OffsetTable = new OffsetTable();

  readonly #caps: readonly [number, number];
  readonly #perShard: number;
  readonly #buckets: Int32Array;
  readonly #shardCounts = new Int32Array(SHARDS * 2);

  constructor(parts: CacheStoreParts) {
    super(parts);
    this.#caps = [
      shardCapacity(parts.capacities[SUCCESS]),
      shardCapacity(parts.capacities[DENIAL]),
    ];
    // At most this many messages fit within the memory limit, even if the capacities are larger.
    const most = Math.ceil(parts.bytes / MESSAGE_USUAL / SHARDS);
    const wanted = Math.min(most, this.#caps[SUCCESS] + this.#caps[DENIAL]);
    let perShard = 1;
    while (perShard < wanted) perShard *= 2;
    this.#perShard = perShard;
    this.#buckets = new Int32Array(SHARDS * perShard).fill(-1);
    this.log = new ChunkLog(parts.bytes, droppedShared);
  }

  /** Frees a replaced cache's memory at once, because reloads may follow one another quickly. */
  close(): void {
    droppedShared(this.log.allocated);
  }

  static keeps(query: Query): boolean {
    return query.type !== EVERY_TYPE && query.class <= CLASS_MAX && query.nameLength > 0;
  }

  look(query: Query): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const every = (variant << 29) | (query.class << 16);
    const exact = every | query.type;
    this.denial = -1;
    this.success = -1;
    // The upper bits of a larger class would be read as DO and CD, and the rest as a different class.
    if (query.class > CLASS_MAX) return;
    let nameError = -1;
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0; slot = this.nexts[slot]!) {
      if (this.hashes[slot] !== hash) continue;
      const kind = this.kinds[slot]!;
      if (kind === exact) {
        if (!this.#named(slot, query)) continue;
        if (this.halves[slot] === DENIAL) this.denial = slot;
        else this.success = slot;
      } else if (kind === every && this.#named(slot, query)) {
        nameError = slot;
      }
    }
    if (nameError >= 0 && (this.denial < 0 || this.remaining(this.denial, query) <= 0))
      this.denial = nameError;
  }

  /**
   * Returns the entry that answers the query, or -1. Denials come first, except SERVFAIL, which is used only if there
   * is no data. With `prefer_positive`, data comes first.
   */
  pick(query: Query): number {
    this.look(query);
    const { denial, success } = this;
    const denies = denial >= 0 && this.usable(denial, query);
    if (success < 0) return denies ? denial : -1;
    const serves = this.usable(success, query);
    if (!denies) return serves ? success : -1;
    if (!serves) return denial;
    return this.parts.preferPositive || this.fails(denial) ? success : denial;
  }

  /**
   * Returns the latest expiry (clock ms) of the fresh entries in `half` that show the name exists; 0 if there are none.
   * Class, DO and CD have to match. The entry for the query's own type does not count, except data that is served stale
   * in preference to denials. That counts as long as it may be served.
   */
  vouchedUntil(query: Query, half: Half, now: number): number {
    const { preferPositive, staleSeconds } = this.parts;
    const shielding = half === SUCCESS && preferPositive;
    let latest = 0;
    this.#family(query, (slot, type) => {
      if (type === EVERY_TYPE || this.halves[slot] !== half || this.fails(slot)) return;
      if (type === query.type && !shielding) return;
      const end = this.end(slot) + (shielding ? staleSeconds * 1000 : 0);
      if (end > now && end > latest) latest = end;
    });
    return latest;
  }

  /** Makes the name's "no data" entries expire at this time, unless they expire earlier anyway. */
  endBy(query: Query, time: number): void {
    this.#family(query, (slot) => {
      if (this.halves[slot] === DENIAL && this.end(slot) > time)
        this.births[slot] = time - this.ttls[slot]! * 1000;
    });
  }

  /** Removes the entry that records that the name does not exist. */
  admit(query: Query): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const every = (variant << 29) | (query.class << 16) | EVERY_TYPE;
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0;) {
      const following = this.nexts[slot]!;
      if (this.hashes[slot] === hash && this.kinds[slot] === every && this.#named(slot, query))
        this.#drop(slot);
      slot = following;
    }
  }

  /** Removes the entries that show the name exists, except data that is served stale in preference to denials. */
  deny(query: Query): void {
    this.#family(query, (slot, type) => {
      if (type !== EVERY_TYPE && !this.shielded(slot, query)) this.#drop(slot);
    });
  }

  shielded(slot: number, query: Query): boolean {
    return this.parts.preferPositive && this.halves[slot] === SUCCESS && this.usable(slot, query);
  }

  remove(slot: number): void {
    this.#drop(slot);
  }

  /** Calls `each` for every entry that matches the query's name, class, DO and CD. The callback may drop the entry. */
  #family(query: Query, each: (slot: number, type: number) => void): void {
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const family = (variant << 29) | (query.class << 16);
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0;) {
      const following = this.nexts[slot]!;
      const kind = this.kinds[slot]!;
      if (this.hashes[slot] === hash && (kind & ~0xffff) === family && this.#named(slot, query)) {
        each(slot, kind & 0xffff);
      }
      slot = following;
    }
  }

  /**
   * Stores a copy of the reply's message with AA set and without client-specific parts.
   * @returns the slot, or -1 if the message does not fit
   */
  put(query: Query, reply: Reply, half: Half, entry: StoredAs): number {
    const { ttlAt, rcode, everyType, seconds, born } = entry;
    const variant = variantOf(query);
    const hash = hashOf(query, variant);
    const kind = (variant << 29) | (query.class << 16) | (everyType ? EVERY_TYPE : query.type);
    this.#forget(query, hash, kind, half);
    const shard = hash & (SHARDS - 1);
    if (this.#shardCounts[shard * 2 + half]! >= this.#caps[half]) this.#evict(shard, half);
    const chunk = this.#room(reply.size);
    if (chunk === null) return -1;
    const slot = this.takeSlot();
    const start = this.log.put(chunk, slot, reply.bytes, reply.start, reply.end);
    clean(chunk.bytes, start, query.nameLength, rcode);
    this.messages[slot] = chunk.bytes;
    this.starts[slot] = start;
    this.sizes[slot] = reply.size;
    this.rcodes[slot] = rcode;
    this.ttlPlaces[slot] = ttlAt;
    this.extendedErrors[slot] = reply.errors;
    this.replies[slot] = null;
    this.hashes[slot] = hash;
    this.kinds[slot] = kind;
    this.ttls[slot] = seconds;
    this.halves[slot] = half;
    this.chunks[slot] = chunk.id;
    this.births[slot] = born;
    this.retries[slot] = 0;
    this.counted[slot] = 0;
    this.spared[slot] = 0;
    this.sources[slot] = 0;
    this.hits.reset(slot);
    this.#link(slot, hash);
    this.#shardCounts[shard * 2 + half]!++;
    this.counts[half]++;
    return slot;
  }

  /**
   * Finds space for a message. When the limit is reached, the oldest chunk is emptied. Entries that were hit since they
   * were stored or last spared move to the newest chunk, and the others are evicted. A flood of names that are queried
   * only once therefore evicts only its own entries.
   */
  #room(size: number): ReplyChunk | null {
    const { log } = this;
    for (let tries = 0; tries < 64; tries++) {
      const chunk = log.room(size);
      if (chunk !== null) {
        // A new chunk first receives the entries from a sparse one, so check again for room afterwards.
        if (chunk.used > 0 || !chunk.shared || log.sparse === null) return chunk;
        this.#move(log.sparse);
        continue;
      }
      const victim = log.victim(size);
      if (victim === null) return null;
      this.#clear(victim, tries < TRIES);
    }
    return null;
  }

  /** @param sparing if false, entries that were queried are removed too */
  #clear(victim: ReplyChunk, sparing: boolean): void {
    for (const slot of victim.slots) {
      if (this.messages[slot] === null || this.chunks[slot] !== victim.id) continue;
      if (sparing && this.#isSpared(slot)) {
        if (!victim.shared) return this.log.renew(victim);
        continue;
      }
      this.evictions[this.halves[slot] as Half]++;
      this.#drop(slot);
    }
    if (victim.live > 0) this.#move(victim);
  }

  /** True if a valid entry was queried since it was stored or last spared. */
  #isSpared(slot: number): boolean {
    if (this.spared[slot] === this.counted[slot]) return false;
    this.spared[slot] = this.counted[slot]!;
    return this.end(slot) + this.parts.staleSeconds * 1000 > this.parts.clock.now();
  }

  #move(from: ReplyChunk): void {
    const { log } = this;
    for (const slot of from.slots) {
      const bytes = this.messages[slot] ?? null;
      if (bytes === null || this.chunks[slot] !== from.id) continue;
      const start = this.starts[slot]!;
      const size = this.sizes[slot]!;
      const to = log.room(size, true)!;
      this.starts[slot] = log.put(to, slot, bytes, start, start + size);
      this.messages[slot] = to.bytes;
      this.replies[slot] = null;
      this.chunks[slot] = to.id;
      log.drop(from.id, size);
    }
  }

  #forget(query: Query, hash: number, kind: number, half: Half): void {
    for (let slot = this.#buckets[this.#bucket(hash)]!; slot >= 0; slot = this.nexts[slot]!) {
      if (this.hashes[slot] !== hash || this.kinds[slot] !== kind || this.halves[slot] !== half)
        continue;
      if (!this.#named(slot, query)) continue;
      this.#drop(slot);
      return;
    }
  }

  /**
   * Evicts an entry from this half and shard. Starting at a random position, it picks the first entry that was not
   * queried since it was stored or spared.
   */
  #evict(shard: number, half: Half): void {
    const slot = this.#victimOf(shard, half);
    if (slot < 0) return;
    this.evictions[half]++;
    this.#drop(slot);
  }

  #victimOf(shard: number, half: Half): number {
    const perShard = this.#perShard;
    const first = this.parts.random.integer(perShard);
    let last = -1;
    let left = TRIES;
    for (let i = 0; i < perShard; i++) {
      const bucket = shard * perShard + ((first + i) & (perShard - 1));
      for (let slot = this.#buckets[bucket]!; slot >= 0; slot = this.nexts[slot]!) {
        if (this.halves[slot] !== half) continue;
        if (--left === 0 || !this.#isSpared(slot)) return slot;
        last = slot;
      }
    }
    return last;
  }

  #link(slot: number, hash: number): void {
    const bucket = this.#bucket(hash);
    this.nexts[slot] = this.#buckets[bucket]!;
    this.#buckets[bucket] = slot;
    let length = 1;
    for (let at = this.nexts[slot]!; at >= 0; at = this.nexts[at]!) {
      if (++length <= CHAIN_MAX) continue;
      this.evictions[this.halves[at] as Half]++;
      this.#drop(at);
      return;
    }
  }

  #drop(slot: number): void {
    const hash = this.hashes[slot]!;
    const bucket = this.#bucket(hash);
    let before = -1;
    for (let at = this.#buckets[bucket]!; at !== slot; at = this.nexts[at]!) before = at;
    if (before < 0) this.#buckets[bucket] = this.nexts[slot]!;
    else this.nexts[before] = this.nexts[slot]!;
    const half = this.halves[slot] as Half;
    this.#shardCounts[(hash & (SHARDS - 1)) * 2 + half]!--;
    this.counts[half]--;
    this.log.drop(this.chunks[slot]!, this.sizes[slot]!);
    this.messages[slot] = null;
    this.replies[slot] = null;
    this.nexts[slot] = this.free;
    this.free = slot;
  }

  #bucket(hash: number): number {
    return (hash & (SHARDS - 1)) * this.#perShard + ((hash >>> 8) & (this.#perShard - 1));
  }

  #named(slot: number, query: Query): boolean {
    const bytes = this.messages[slot]!;
    const start = this.starts[slot]!;
    const { folded, nameLength } = query;
    for (let i = 0, at = start + HEADER.SIZE; i < nameLength; i++, at++) {
      if (bytes[at] !== folded[i]) return false;
    }
    return true;
  }
}

export function shardCapacity(capacity: number): number {
  return Math.max(SHARD_MIN, Math.floor(capacity / SHARDS));
}
