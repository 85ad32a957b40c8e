/** Caches a plugin's replies for as long as they are valid. */
import { copyOf } from '../../base/copy-bytes.ts';
import { hashPair } from '../../base/hash.ts';
import { HEADER } from '../../wire/iana.ts';
import { LOWER } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';

/**
 * The data from which replies are made. `version` increases (and wraps around at 32 bits) whenever a reply might
 * change.
 */
export interface Dependency {
  readonly version: number;
}

/** Number of slots in a new generation. At most half of the slots are used. */
const SLOTS_MIN = 512;
/** Maximum slots per generation. */
const SLOTS_MAX = 32_768;
/** Maximum number of slots searched for a question. Chance collisions need fewer. */
const PROBES_MAX = 128;
/** Maximum bytes of replies per generation. */
const BYTES_MAX = 2 * 1024 * 1024;
const CHUNK = 64 * 1024;
/**
 * Longer replies are stored in a separate table, so that a few names with thousands of endpoints do not evict all
 * others.
 */
const LARGE = 8 * 1024;
/** Maximum number of bytes of large replies per generation, enough for 64 of the longest. */
const LARGE_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Maximum number of large replies per second that are built only for the cache. Beyond that, clients get the part that
 * fits.
 */
const LARGE_PER_SECOND = 64;
/** A name is cached only at its second query, because otherwise a flood of random names would evict all others. */
const SEEN_BITS = 1 << 17;
/** Maximum number of names seen only once. */
const SEEN_MAX = 40_000;

/**
 * Caches a plugin's replies to standard queries by name and type, so that a repeated question costs one table lookup
 * and no memory. Other queries are rare and are always answered afresh. A reply is valid only while the version of its
 * dependency is unchanged, so it is never stale. The size is limited: when one generation is full, the previous one is
 * dropped. Replies that are still being queried move to the new one.
 */
export class ReplyCache {
  readonly #small = new Generations(BYTES_MAX);
  readonly #large = new Generations(LARGE_BYTES_MAX);
  /**
   * One bit per recently seen question. Some questions share a bit, which only means that they are cached at their
   * first query.
   */
  readonly #seen = new Int32Array(SEEN_BITS >> 5);
  #seenCount = 0;
  #largeLeft = LARGE_PER_SECOND;
  #refilledAt = 0;

  /** Returns the cached reply to this query, or null. */
  get(query: Query): Reply | null {
    if (!query.isStandard) return null;
    const key = keyOf(query);
    return this.#small.get(query, key) ?? (this.#large.empty ? null : this.#large.get(query, key));
  }

  /**
   * Returns true if a large reply to this query is worth building even though its client cannot receive it. For that,
   * the question must have been seen before, and not too many such replies may be in progress.
   */
  wants(query: Query): boolean {
    if (!query.isStandard || !this.#wasSeen(keyOf(query))) return false;
    const passed = query.arrived - this.#refilledAt;
    if (passed >= 1000 || passed < 0) {
      this.#refilledAt = query.arrived;
      this.#largeLeft = LARGE_PER_SECOND;
    }
    if (this.#largeLeft === 0) return false;
    this.#largeLeft--;
    return true;
  }

  /**
   * Caches a new reply, if its question has been seen before.
   * @returns the cached reply, or the one passed in
   */
  offer(query: Query, reply: Reply, dependency: Dependency): Reply {
    if (!query.isStandard) return reply;
    const key = keyOf(query);
    if (!this.#wasSeen(key)) return reply;
    const table = reply.size > LARGE ? this.#large : this.#small;
    return table.store(query, key, reply, dependency);
  }

  clear(): void {
    this.#small.clear();
    this.#large.clear();
  }

  #wasSeen(key: number): boolean {
    const word = (key & (SEEN_BITS - 1)) >> 5;
    const bit = 1 << (key & 31);
    if ((this.#seen[word]! & bit) !== 0) return true;
    if (++this.#seenCount > SEEN_MAX) {
      this.#seen.fill(0);
      this.#seenCount = 0;
    }
    this.#seen[word]! |= bit;
    return false;
  }
}

/** The table being filled, and the previous one, which is dropped when the first is full. */
class Generations {
  readonly #bytesMax: number;
  #young = new ReplyTable();
  #old: ReplyTable | null = null;
  empty = true;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(query: Query, key: number): Reply | null {
    const slot = this.#young.find(query, key);
    if (slot >= 0) return this.#young.reply(slot);
    const old = this.#old;
    if (old === null) return null;
    const oldSlot = old.find(query, key);
    if (oldSlot < 0) return null;
    const reply = old.reply(oldSlot);
    if (reply !== null) this.store(query, key, reply, old.dependency(oldSlot));
    return reply;
  }

  store(query: Query, key: number, reply: Reply, dependency: Dependency): Reply {
    this.empty = false;
    if (this.#young.full(reply.size, this.#bytesMax)) {
      this.#old = this.#young;
      this.#young = new ReplyTable();
    }
    return this.#young.put(query, key, reply, dependency);
  }

  clear(): void {
    if (this.empty) return;
    this.#young = new ReplyTable();
    this.#old = null;
    this.empty = true;
  }
}

/** Computes a 30-bit key by hashing both name and type, so that one name's types do not fill adjacent slots. */
function keyOf(query: Query): number {
  return hashPair(query.hash, query.type) & 0x3fffffff;
}

class ReplyTable {
  #mask = SLOTS_MIN - 1;
  #keys = new Int32Array(SLOTS_MIN);
  #versions = new Int32Array(SLOTS_MIN);
  #replies: (Reply | null)[] = Array<Reply | null>(SLOTS_MIN).fill(null);
  #dependencies: (Dependency | null)[] = Array<Dependency | null>(SLOTS_MIN).fill(null);
  #chunk = new Uint8Array(0);
  #used = 0;
  #bytes = 0;
  #entries = 0;

  full(size: number, bytesMax: number): boolean {
    return 2 * this.#entries >= SLOTS_MAX || this.#bytes + size > bytesMax;
  }

  /** Returns the slot of this question, or -1. */
  find(query: Query, key: number): number {
    const mask = this.#mask;
    let slot = key & mask;
    for (let probes = 0; probes < PROBES_MAX; probes++, slot = (slot + 1) & mask) {
      const reply = this.#replies[slot]!;
      if (reply === null) return -1;
      if (this.#keys[slot] === key && asks(reply, query)) return slot;
    }
    return -1;
  }

  /** Returns the reply in this slot, or null if it is no longer valid. */
  reply(slot: number): Reply | null {
    return this.#dependencies[slot]!.version === this.#versions[slot] ? this.#replies[slot]! : null;
  }

  dependency(slot: number): Dependency {
    return this.#dependencies[slot]!;
  }

  put(query: Query, key: number, reply: Reply, dependency: Dependency): Reply {
    const copy = this.#copy(reply);
    const known = this.find(query, key);
    if (known >= 0) {
      this.#set(known, key, copy, dependency, dependency.version);
      return copy;
    }
    if (2 * (this.#entries + 1) > this.#mask) this.#grow();
    this.#add(key, copy, dependency, dependency.version);
    return copy;
  }

  #set(slot: number, key: number, reply: Reply, dependency: Dependency, version: number): void {
    this.#keys[slot] = key;
    this.#versions[slot] = version;
    this.#replies[slot] = reply;
    this.#dependencies[slot] = dependency;
  }

  /** Puts the reply into the first free slot. If there is none nearby, the reply is not cached. */
  #add(key: number, reply: Reply, dependency: Dependency, version: number): void {
    let slot = key & this.#mask;
    for (let probes = 0; probes < PROBES_MAX; probes++, slot = (slot + 1) & this.#mask) {
      if (this.#replies[slot] !== null) continue;
      this.#set(slot, key, reply, dependency, version);
      this.#entries++;
      return;
    }
  }

  #grow(): void {
    const keys = this.#keys;
    const versions = this.#versions;
    const replies = this.#replies;
    const dependencies = this.#dependencies;
    const size = 2 * (this.#mask + 1);
    this.#mask = size - 1;
    this.#keys = new Int32Array(size);
    this.#versions = new Int32Array(size);
    this.#replies = Array<Reply | null>(size).fill(null);
    this.#dependencies = Array<Dependency | null>(size).fill(null);
    this.#entries = 0;
    replies.forEach((reply, slot) => {
      if (reply !== null) this.#add(keys[slot]!, reply, dependencies[slot]!, versions[slot]!);
    });
  }

  #copy(reply: Reply): Reply {
    const size = reply.size;
    if (size > LARGE) {
      this.#bytes += size;
      const bytes = copyOf(reply.bytes, reply.start, reply.end);
      return reply.with({ bytes, start: 0, end: size });
    }
    if (this.#used + size > this.#chunk.length) {
      this.#chunk = new Uint8Array(CHUNK);
      this.#used = 0;
    }
    const start = this.#used;
    this.#chunk.set(reply.bytes.subarray(reply.start, reply.end), start);
    this.#used += size;
    this.#bytes += size;
    return reply.with({ bytes: this.#chunk, start, end: start + size });
  }
}

/** Returns true if the reply's question is the same as the query's, comparing type and name (ignoring ASCII case). */
function asks(reply: Reply, query: Query): boolean {
  const { folded, nameLength } = query;
  const { bytes } = reply;
  let at = reply.start + HEADER.SIZE;
  if (bytes[at] !== folded[0]) return false;
  for (let i = 0; i < nameLength; i++, at++) if (LOWER[bytes[at]!] !== folded[i]) return false;
  return bytes[at] === query.type >> 8 && bytes[at + 1] === (query.type & 0xff);
}
