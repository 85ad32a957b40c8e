/** Questions that are being asked further down, so that the same one is asked once at a time. */
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { Later } from '../../base/maybe.ts';
import type { CacheCounters } from './cache-counters.ts';
import { hashPair } from '../../base/hash.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';

/** A question that is being resolved, and all queries that wait for its reply. */
export class Flight {
  readonly query: Query;
  readonly counters: CacheCounters;
  /** Its place in the table. */
  readonly bucket: number;
  /** Other queries with the same question. */
  #joined: Later<Reply>[] = none;
  /** Called when the flight has ended, with or without a reply. */
  #afterwards: (() => void)[] = none;
  /** Whether the reply has come, though perhaps not been looked at. */
  landed = false;
  /** The source of the reply, as a number of `Sources`. */
  source = 0;
  /** Another one in the same place of the table; the table's own. */
  next: Flight | null = null;

  constructor(query: Query, counters: CacheCounters) {
    this.query = query;
    this.counters = counters;
    this.bucket = bucketOf(query, query.type);
  }

  get waiters(): number {
    return this.#joined.length;
  }

  /** The reply for one more query that waited. */
  join(): Later<Reply> {
    const later = new Later<Reply>();
    if (this.#joined === none) this.#joined = [];
    this.#joined.push(later);
    return later;
  }

  afterwards(run: () => void): void {
    if (this.#afterwards === none) this.#afterwards = [];
    this.#afterwards.push(run);
  }

  over(reply: Reply): void {
    for (const later of this.#joined) later.resolve(reply);
    for (const run of this.#afterwards) run();
  }

  failed(error: unknown): void {
    for (const later of this.#joined) later.reject(error);
    for (const run of this.#afterwards) run();
  }
}

/** What most flights have joined and to do afterwards: nothing. It is never written to. */
const none: never[] = [];

/** As many as there may be questions under way before looking for one takes longer. */
const BUCKETS = 4096;

/** The questions that are under way, so that the same question is asked only once at a time. */
export class Flights {
  /** How many queries wait for a question that another one has asked. */
  waiting = 0;
  /** The first of those whose hashes end alike. */
  readonly #buckets: (Flight | null)[] = Array<Flight | null>(BUCKETS).fill(null);

  /** The flight that asks just what this query asks, or null. */
  find(query: Query): Flight | null {
    return this.#find(query, query.type);
  }

  /**
   * Another type of the same name that is under way, its reply not there yet; null: none. Only
   * types that resolvers ask for side by side.
   */
  sibling({ query }: Flight): Flight | null {
    for (const type of PAIRED) {
      if (type === query.type) continue;
      const flight = this.#find(query, type);
      if (flight !== null && !flight.landed) return flight;
    }
    return null;
  }

  add(flight: Flight): void {
    flight.next = this.#buckets[flight.bucket]!;
    this.#buckets[flight.bucket] = flight;
  }

  remove(flight: Flight): void {
    const first = this.#buckets[flight.bucket] ?? null;
    if (first === flight) this.#buckets[flight.bucket] = flight.next;
    else {
      for (let before = first; before !== null; before = before.next) {
        if (before.next === flight) before.next = flight.next;
      }
    }
    flight.next = null;
    this.waiting -= flight.waiters;
  }

  #find(query: Query, type: number): Flight | null {
    let flight = this.#buckets[bucketOf(query, type)] ?? null;
    for (; flight !== null; flight = flight.next)
      if (flight.query.type === type && alike(flight.query, query)) return flight;
    return null;
  }
}

const PAIRED: readonly number[] = [TYPE.A, TYPE.AAAA, TYPE.HTTPS];

/** Of name and type: all types of one name, asked at once, must not be in one chain. */
function bucketOf(query: Query, type: number): number {
  return hashPair(query.hash, type) & (BUCKETS - 1);
}

/**
 * Same name, class, DO, CD, and kind of transport: a client on a stream must not get what was cut
 * for a datagram.
 */
function alike(a: Query, b: Query): boolean {
  if (
    a.hash !== b.hash ||
    a.class !== b.class ||
    a.dnssecOk !== b.dnssecOk ||
    ((a.flags ^ b.flags) & FLAG.CD) !== 0
  )
    return false;
  if ((a.proto === 'udp') !== (b.proto === 'udp') || a.nameLength !== b.nameLength) return false;
  for (let i = 0; i < a.nameLength; i++) if (a.folded[i] !== b.folded[i]) return false;
  return true;
}
