/** One `forward` line in a worker, with its upstreams and their in-flight queries. */
import { isLater, type Later, type Maybe } from '../../base/maybe.ts';
import { sendAsOurs } from '../../transport/upstream/write-query.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import { isInZone } from '../../engine/contract/zone-match.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, overloaded, type Reply } from '../../wire/reply.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import {
  DEADLINE_MS,
  UpstreamQuery,
  type UpstreamQueryOwner,
  type QueuedQuery,
} from './upstream-query.ts';
import { refused } from './forward-failures.ts';
import type { UpstreamSetParts } from './upstream-set-parts.ts';
import { makePolicy } from './forward-policy.ts';
import { InFlightQuestions } from './in-flight-questions.ts';
import type { ForwardUpstream } from './forward-upstream.ts';

/** Maximum number of idle objects that later queries can reuse. */
const IDLE_MAX = 1024;
/**
 * Maximum number of in-flight queries for one question (name, type, class). If there are n of them, a forged reply is n
 * times as likely to match (RFC 5452, section 5).
 */
const SAME_MAX = 4;

/** Selects the queries for its zone, limits their number, and chooses the first upstream. */
export class UpstreamSet implements UpstreamQueryOwner {
  upstreams: readonly ForwardUpstream[] = [];
  readonly parts: UpstreamSetParts;
  readonly #from: WireName;
  readonly #except: readonly WireName[];
  readonly #order: (upstreams: readonly ForwardUpstream[]) => readonly ForwardUpstream[];
  readonly #crowded: Reply;
  readonly #idle: UpstreamQuery[] = [];
  readonly #questions = new InFlightQuestions();
  #underWay = 0;

  constructor(parts: UpstreamSetParts) {
    this.parts = parts;
    this.#from = foldName(parseName(parts.from));
    this.#except = (parts.except ?? []).map((name) => foldName(parseName(name)));
    this.#order = makePolicy(parts.policy, parts.random);
    this.#crowded = refused(`concurrent queries exceeded maximum ${parts.maxConcurrent}`);
  }

  readonly link: Next = (query: Query): Maybe<Reply> => {
    if (!this.#matches(query)) return this.parts.next(query);
    // Too many queries are waiting in the server as a whole.
    if (!query.mayWait) return overloaded;
    const { maxConcurrent, metrics } = this.parts;
    if (this.#underWay >= maxConcurrent) {
      metrics.rejects.add(1);
      return this.#crowded;
    }
    this.#underWay++;
    metrics.waiting.add(1);
    const kept = query.keep();
    sendAsOurs(kept);
    const now = this.parts.clock.now();
    return this.#ask(kept, now, now + DEADLINE_MS);
  };

  over(upstreamQuery: UpstreamQuery): void {
    this.#left(1);
    this.#questions.remove(upstreamQuery);
    if (this.#idle.length < IDLE_MAX) this.#idle.push(upstreamQuery);
  }

  share(
    reply: Maybe<Reply>,
    joined: readonly Later<Reply>[],
    queued: readonly QueuedQuery[],
  ): void {
    this.#left(joined.length);
    for (const later of joined) later.resolve(reply);
    if (queued.length === 0) return;
    const unanswered = !isLater(reply) && reply.cause !== null ? reply : waitedTooLong;
    const now = this.parts.clock.now();
    for (const { query, reply: later, deadline } of queued) {
      // An upstream may answer a question in one form but not in another, because some firewalls drop EDNS.
      if (now < deadline) later.resolve(this.#ask(query, now, deadline));
      else {
        this.#left(1);
        later.resolve(unanswered);
      }
    }
  }

  /** Sends the query, unless the same question is already in flight in the same form, or too often. */
  #ask(query: Query, now: number, deadline: number): Maybe<Reply> {
    const questions = this.#questions;
    const { metrics } = this.parts;
    const passes = this.parts.isRoundTrip(query);
    if (!passes) {
      const twin = questions.twin(query);
      if (twin !== null) {
        metrics.shared.add(1);
        return twin.join();
      }
      const before = questions.first;
      if (questions.count >= SAME_MAX && before !== null) {
        metrics.shared.add(1);
        if (!query.isSigned) return before.queue(query, deadline);
        this.#left(1);
        return tooManySame;
      }
    }
    const upstreamQuery = this.#idle.pop() ?? new UpstreamQuery(this);
    upstreamQuery.query = query;
    if (!passes) questions.add(upstreamQuery);
    return upstreamQuery.begin(query, this.#order(this.upstreams), now, deadline);
  }

  #left(queries: number): void {
    this.#underWay -= queries;
    this.parts.metrics.waiting.add(-queries);
  }

  #matches(query: Query): boolean {
    const from = this.#from;
    if (!isInZone(query, from)) return false;
    if (this.#except.length === 0 || query.nameLength === from.length) return true;
    return !this.#except.some((name) => isInZone(query, name));
  }
}

const waitedTooLong = failure(
  RCODE.SERVFAIL,
  'forward',
  new Error('i/o timeout while identical queries were in flight'),
  [{ code: EDE.OTHER, text: 'too many identical queries are in flight' }],
);
const tooManySame = refused('too many identical queries are in flight');
