/** Questions in flight to upstreams. */
import { holdsAt } from '../../base/copy-bytes.ts';
import { hashPair } from '../../base/hash.ts';
import { flagsUpstream } from '../../transport/upstream/write-query.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { UpstreamQuery } from './upstream-query.ts';

const BUCKETS = 2048;

/** Finds a forward line's in-flight queries by question, without allocating anything per query. */
export class InFlightQuestions {
  /** Results of the last `twin` call: the number of queries with this question, and one of them. */
  count = 0;
  first: UpstreamQuery | null = null;
  readonly #buckets: (UpstreamQuery | null)[] = Array<UpstreamQuery | null>(BUCKETS).fill(null);

  /** Returns an in-flight query that differs only in the name's upper and lower case, or null. */
  twin(query: Query): UpstreamQuery | null {
    this.count = 0;
    this.first = null;
    let one = this.#buckets[bucketOf(query)] ?? null;
    for (; one !== null; one = one.nextSame) {
      if (!isSameQuestion(one.query, query)) continue;
      if (isSentAlike(one.query, query)) return one;
      this.count++;
      this.first = one;
    }
    return null;
  }

  add(upstreamQuery: UpstreamQuery): void {
    const bucket = bucketOf(upstreamQuery.query);
    upstreamQuery.nextSame = this.#buckets[bucket] ?? null;
    this.#buckets[bucket] = upstreamQuery;
  }

  /** Does nothing if it is not there. */
  remove(upstreamQuery: UpstreamQuery): void {
    const bucket = bucketOf(upstreamQuery.query);
    const first = this.#buckets[bucket] ?? null;
    if (first === upstreamQuery) this.#buckets[bucket] = upstreamQuery.nextSame;
    else {
      for (let before = first; before !== null; before = before.nextSame)
        if (before.nextSame === upstreamQuery) before.nextSame = upstreamQuery.nextSame;
    }
    upstreamQuery.nextSame = null;
  }
}

function bucketOf({ hash, type }: Query): number {
  return hashPair(hash, type) & (BUCKETS - 1);
}

/**
 * Compares the name, type, class, options set by `rewrite`, and kind of transport. Where TCP to an upstream is blocked,
 * UDP queries must not wait for it.
 */
function isSameQuestion(a: Query, b: Query): boolean {
  return (
    a.hash === b.hash &&
    a.overStream === b.overStream &&
    a.isAskedAt(b.bytes, b.start + HEADER.SIZE, b.end) &&
    areSame(a.upstreamOptions, b.upstreamOptions)
  );
}

/** True if the upstream would get the same message for both queries, which have the same question. */
function isSentAlike(a: Query, b: Query): boolean {
  return (
    a.upstreamOptions !== null &&
    b.upstreamOptions !== null &&
    flagsUpstream(a) === flagsUpstream(b) &&
    a.edns === b.edns &&
    a.dnssecOk === b.dnssecOk
  );
}

/** Ignores the options if a query is sent unchanged (null). */
function areSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null || (a.length === b.length && holdsAt(a, 0, b));
}
