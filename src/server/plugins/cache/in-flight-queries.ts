/** Tracks in-flight queries, so that only one of several identical queries is passed on at a time. */
import type { Query } from '../../transport/query.ts';
import type { ReplyScope } from '../../transport/reply-scope.ts';
import type { Reply } from '../../wire/reply.ts';
import { Later } from '../../base/maybe.ts';
import type { CacheCounters } from './cache-counters.ts';
import { hashPair } from '../../base/hash.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';

/** A query that the next plugin is answering, and the queries that wait for the same reply. */
export class InFlightQuery {
  readonly query: Query;
  readonly counters: CacheCounters;
  readonly scope: ReplyScope;
  readonly bucket: number;
  #joined: Later<Reply | null>[] = none;
  /** Called when the query ends, with or without a reply. */
  #afterwards: (() => void)[] = none;
  /** True once the reply has arrived, even if it has not been stored yet. */
  answered = false;
  /** The reply's source, as a number from `Sources`. */
  source = 0;
  /** The next one in the same bucket. */
  next: InFlightQuery | null = null;

  constructor(query: Query, counters: CacheCounters, scope: ReplyScope) {
    this.query = query;
    this.counters = counters;
    this.scope = scope;
    this.bucket = bucketOf(query, query.type);
  }

  get waiters(): number {
    return this.#joined.length;
  }

  /** Adds a waiting query. It gets null if the reply must not be shared with other clients. */
  join(): Later<Reply | null> {
    const later = new Later<Reply | null>();
    if (this.#joined === none) this.#joined = [];
    this.#joined.push(later);
    return later;
  }

  afterwards(run: () => void): void {
    if (this.#afterwards === none) this.#afterwards = [];
    this.#afterwards.push(run);
  }

  over(reply: Reply | null): void {
    for (const later of this.#joined) later.resolve(reply);
    for (const run of this.#afterwards) run();
  }

  failed(error: unknown): void {
    for (const later of this.#joined) later.reject(error);
    for (const run of this.#afterwards) run();
  }
}

/** Shared empty list. Never written to. */
const none: never[] = [];

/** Number of in-flight queries above which `find` slows down. */
const BUCKETS = 4096;

export class InFlightQueries {
  /** Number of queries waiting for another query's reply. */
  waiting = 0;
  readonly #buckets: (InFlightQuery | null)[] = Array<InFlightQuery | null>(BUCKETS).fill(null);

  /** Returns the in-flight query with the same question, or null. */
  find(query: Query): InFlightQuery | null {
    return this.#find(query, query.type);
  }

  /**
   * Returns an unanswered in-flight query for another type of the same name, or null. Covers only types that resolvers
   * query in parallel.
   */
  sibling({ query }: InFlightQuery): InFlightQuery | null {
    for (const type of PAIRED) {
      if (type === query.type) continue;
      const pending = this.#find(query, type);
      if (pending !== null && !pending.answered) return pending;
    }
    return null;
  }

  add(pending: InFlightQuery): void {
    pending.next = this.#buckets[pending.bucket]!;
    this.#buckets[pending.bucket] = pending;
  }

  remove(pending: InFlightQuery): void {
    const first = this.#buckets[pending.bucket] ?? null;
    if (first === pending) this.#buckets[pending.bucket] = pending.next;
    else {
      for (let before = first; before !== null; before = before.next) {
        if (before.next === pending) before.next = pending.next;
      }
    }
    pending.next = null;
    this.waiting -= pending.waiters;
  }

  #find(query: Query, type: number): InFlightQuery | null {
    let pending = this.#buckets[bucketOf(query, type)] ?? null;
    for (; pending !== null; pending = pending.next)
      if (pending.query.type === type && alike(pending.query, query)) return pending;
    return null;
  }
}

const PAIRED: readonly number[] = [TYPE.A, TYPE.AAAA, TYPE.HTTPS];

/** Includes the type, so that concurrent queries for different types of a name do not share one chain. */
function bucketOf(query: Query, type: number): number {
  return hashPair(query.hash, type) & (BUCKETS - 1);
}

/**
 * True if the name, class, DO, CD and kind of transport match. A stream client must not get a reply truncated for a
 * datagram.
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
