/** Which questions are under way to upstreams. */
import { hashPair } from '../../base/hash.ts';
import { flagsUpstream } from '../../transport/upstream/write-query.ts';
import { HEADER } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Forwarding } from './forwarding.ts';

const BUCKETS = 2048;

/**
 * The queries of one forward line that are under way, by question. The fields tell about the query
 * that `twin` was called for last; nothing is allocated.
 */
export class QuestionsUnderWay {
  /** How many of its question are under way, and one of them. */
  count = 0;
  first: Forwarding | null = null;
  readonly #buckets: (Forwarding | null)[] = Array<Forwarding | null>(BUCKETS).fill(null);

  /** The one whose query the upstream cannot tell from this one, but for its spelling; or null. */
  twin(query: Query): Forwarding | null {
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

  add(forwarding: Forwarding): void {
    const bucket = bucketOf(forwarding.query);
    forwarding.nextSame = this.#buckets[bucket] ?? null;
    this.#buckets[bucket] = forwarding;
  }

  /** Takes it out, if it is there. */
  remove(forwarding: Forwarding): void {
    const bucket = bucketOf(forwarding.query);
    const first = this.#buckets[bucket] ?? null;
    if (first === forwarding) this.#buckets[bucket] = forwarding.nextSame;
    else {
      for (let before = first; before !== null; before = before.nextSame)
        if (before.nextSame === forwarding) before.nextSame = forwarding.nextSame;
    }
    forwarding.nextSame = null;
  }
}

function bucketOf({ hash, type }: Query): number {
  return hashPair(hash, type) & (BUCKETS - 1);
}

/**
 * Name, type and class, the options that rules of the operator have written, and the kind of
 * transport: where TCP to an upstream is blocked, queries over UDP must not wait for it.
 */
function isSameQuestion(a: Query, b: Query): boolean {
  return (
    a.hash === b.hash &&
    a.overStream === b.overStream &&
    a.isAskedAt(b.bytes, b.start + HEADER.SIZE, b.end) &&
    areSame(a.upstreamOptions, b.upstreamOptions)
  );
}

/** Of one question: the upstream gets the same message. */
function isSentAlike(a: Query, b: Query): boolean {
  return (
    a.upstreamOptions !== null &&
    b.upstreamOptions !== null &&
    flagsUpstream(a) === flagsUpstream(b) &&
    a.edns === b.edns &&
    a.dnssecOk === b.dnssecOk
  );
}

/** Those of a query that is sent as it came are not looked at. */
function areSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
