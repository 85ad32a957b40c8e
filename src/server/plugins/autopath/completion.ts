/** Tries the names in a search path on behalf of the client. */
import { isLater, type Maybe } from '../../base/maybe.ts';
import { NoNextPlugin, type Next } from '../../engine/contract/plugin.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import { withQuestion } from '../../wire/requestion.ts';
import { type Reply, silence } from '../../wire/reply.ts';
import { Candidate } from './candidate.ts';
import { MISSING, type PairMemory } from './pair-memory.ts';
import type { SearchPath, NameSuffix } from './search-path.ts';

export interface CompletionParts {
  readonly path: SearchPath;
  readonly pairs: PairMemory;
  readonly next: Next;
  /** Queries the whole server for names outside the block's zones that no plugin in this chain answers. */
  readonly elsewhere: Next;
  readonly isHere: (query: Query) => boolean;
  readonly succeeded: (query: Query) => void;
}

interface AutopathWalk {
  query: Query;
  readonly begin: number;
  /** The reply for the name itself: NXDOMAIN, or REFUSED if the name is not served here. */
  readonly first: Reply;
  index: number;
  /** A candidate's failed reply; after a failure, NXDOMAIN must not be sent. */
  failed: Reply | null;
}

const records = new Records();

/**
 * Tries the search path for the client. Candidates are queried in order, and the first one that exists answers the
 * client's question. The call is synchronous as long as answers are available immediately. NXDOMAIN is sent only if
 * every candidate was NXDOMAIN. If a candidate fails, the result is SERVFAIL unless a later one exists. A and AAAA
 * queries in the same lookup get the same result (see PairMemory).
 */
export class Completion {
  readonly #parts: CompletionParts;
  readonly #candidate = new Candidate();
  readonly #suffix: NameSuffix = { from: new Uint8Array(0), at: 0, end: 0 };

  constructor(parts: CompletionParts) {
    this.#parts = parts;
  }

  answer(query: Query): Maybe<Reply> {
    const reply = this.#parts.next(query);
    if (!isLater(reply)) return this.#begin(query, reply);
    const kept = query.keep();
    return reply.then((late) => this.#begin(kept, late));
  }

  #begin(query: Query, first: Reply): Maybe<Reply> {
    const { path, pairs, succeeded } = this.#parts;
    const unserved = isUnserved(first) || isRefused(first);
    const decided = first.rcode === RCODE.NXDOMAIN || first.rcode === RCODE.NOERROR;
    if (first === silence || !(decided || unserved)) return first;
    const begin = path.begin(query);
    if (unserved && begin < 0) return first;
    if (first.rcode === RCODE.NOERROR) {
      if (begin >= 0) {
        succeeded(query);
        pairs.note(query, 0);
      }
      return first;
    }
    const walk: AutopathWalk = { query, begin, first, index: 1, failed: null };
    return begin < 0 ? this.#missing(walk) : this.#walk(walk);
  }

  #walk(walk: AutopathWalk): Maybe<Reply> {
    for (; walk.index < this.#parts.path.length; walk.index++) {
      const reply = this.#ask(walk);
      if (reply === null) continue;
      if (isLater(reply)) {
        walk.query = walk.query.keep();
        return reply.then((late) => {
          const end = this.#judge(walk, late);
          if (end !== null) return end;
          walk.index++;
          return this.#walk(walk);
        });
      }
      const end = this.#judge(walk, reply);
      if (end !== null) return end;
    }
    return walk.failed === null
      ? this.#missing(walk)
      : withQuestion(walk.failed, walk.query, 'stay');
  }

  /** Queries the next candidate. Returns null if its name would be too long. */
  #ask({ query, begin, index }: AutopathWalk): Maybe<Reply> | null {
    const suffix = this.#suffix;
    this.#parts.path.suffix(query, begin, index, suffix);
    const own = !this.#candidate.busy;
    const candidate = own ? this.#candidate : new Candidate();
    const asked = candidate.make(query, begin, suffix.from, suffix.at, suffix.end);
    if (asked === null) return null;
    candidate.busy = true;
    try {
      const { next, elsewhere, isHere } = this.#parts;
      const reply = next(asked);
      if (isHere(asked)) return reply;
      if (!isLater(reply)) return isNobodys(reply) ? elsewhere(asked) : reply;
      const kept = asked.keep();
      return reply.then((late) => (isNobodys(late) ? elsewhere(kept) : late));
    } finally {
      candidate.busy = false;
    }
  }

  /**
   * Evaluates a candidate's reply.
   * @returns the reply to send to the client, or null to try the next candidate
   */
  #judge(walk: AutopathWalk, reply: Reply): Reply | null {
    if (reply === silence) return reply;
    if (reply.rcode === RCODE.NXDOMAIN) {
      // The other type was found at this candidate, so the search ends here too, because a later candidate is a
      // different host.
      return this.#parts.pairs.outcome(walk.query) === walk.index ? this.#missing(walk) : null;
    }
    if (reply.rcode === RCODE.NOERROR && !reply.bare) return this.#exists(walk, reply);
    if (isUnserved(reply)) return null;
    // If an upstream failed, the next name would fail as well after the same wait. Likewise, if this lookup was not
    // allowed to wait, the next ones will not be either.
    if (reply.bare && !isRefused(reply) && (reply.cause !== null || reply.errors !== null))
      return reply;
    // This server does not serve these names, so the client must continue its own search.
    if (reply.bare && reply.rcode === RCODE.REFUSED) return this.#missing(walk);
    walk.failed ??= reply;
    return null;
  }

  #exists({ query, index, first }: AutopathWalk, reply: Reply): Reply {
    const { pairs, succeeded } = this.#parts;
    if (pairs.outcome(query) === MISSING) {
      // The query for the other type got NXDOMAIN, so the client continues its own search for both.
      pairs.note(query, MISSING);
      return first;
    }
    pairs.note(query, index);
    succeeded(query);
    if (reply.answers === 0) return withQuestion(reply, query, 'stay');
    records.of(reply).next();
    return withQuestion(reply, query, 'stay', records.ttl);
  }

  #missing({ query, first }: AutopathWalk): Reply {
    const { pairs } = this.#parts;
    const other = pairs.outcome(query);
    pairs.note(query, MISSING);
    // The name exists, but has no records of this type.
    return other >= 0 && !first.bare ? first.recoded(RCODE.NOERROR) : first;
  }
}

/**
 * True if a plugin denied the name without passing it on, as `hosts` and `template` do without `fallthrough`. In
 * CoreDNS, such a plugin returns a result code without a message or an error.
 */
function isUnserved({ bare, rcode, cause, plugin }: Reply): boolean {
  return bare && rcode === RCODE.SERVFAIL && cause === null && plugin !== '';
}

/** True if no plugin in the block handles the name and nothing else went wrong. */
function isRefused({ bare, rcode, cause, errors }: Reply): boolean {
  if (!bare || rcode !== RCODE.REFUSED || cause !== null) return false;
  return errors === null || errors.every(({ code }) => code === EDE.NOT_AUTHORITATIVE);
}

/** True if no plugin in the block answers the name, so another block might. */
function isNobodys({ bare, rcode, cause }: Reply): boolean {
  return bare && (cause === null ? rcode === RCODE.REFUSED : cause instanceof NoNextPlugin);
}
