/** One line of `forward`, in a worker. */
import { isLater, type Later, type Maybe } from '../../base/maybe.ts';
import { sendAsOurs } from '../../transport/upstream/write-query.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import { isInZone } from '../../engine/contract/zone-match.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, overloaded, type Reply } from '../../wire/reply.ts';
import { EDE, RCODE } from '../../wire/iana.ts';
import { DEADLINE_MS, Forwarding, type ForwardingHost, type QueuedQuery } from './forwarding.ts';
import { refused } from './outcome.ts';
import type { ForwarderParts } from './forwarder-parts.ts';
import { makePolicy } from './forward-policy.ts';
import { QuestionsUnderWay } from './questions-under-way.ts';
import type { ForwardTarget } from './forward-target.ts';

/** Forwardings that are kept for later queries. */
const IDLE_MAX = 1024;
/**
 * The most queries of one question (name, type, class) that are under way at once, however they
 * differ: with n of them, a forged reply needs a guess n times less lucky (RFC 5452 section 5).
 */
const SAME_MAX = 4;

/**
 * One forward line at work: which queries it takes, how many at a time, and which upstream is asked
 * first.
 */
export class Forwarder implements ForwardingHost {
  targets: readonly ForwardTarget[] = [];
  readonly parts: ForwarderParts;
  readonly #from: WireName;
  readonly #except: readonly WireName[];
  readonly #order: (targets: readonly ForwardTarget[]) => readonly ForwardTarget[];
  readonly #crowded: Reply;
  readonly #idle: Forwarding[] = [];
  readonly #questions = new QuestionsUnderWay();
  #underWay = 0;

  constructor(parts: ForwarderParts) {
    this.parts = parts;
    this.#from = foldName(parseName(parts.from));
    this.#except = parts.except.map((name) => foldName(parseName(name)));
    this.#order = makePolicy(parts.policy, parts.random);
    this.#crowded = refused(`concurrent queries exceeded maximum ${parts.maxConcurrent}`);
  }

  readonly link: Next = (query: Query): Maybe<Reply> => {
    if (!this.#matches(query)) return this.parts.next(query);
    // Too many wait in front of the whole server.
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

  over(forwarding: Forwarding): void {
    this.#left(1);
    this.#questions.remove(forwarding);
    if (this.#idle.length < IDLE_MAX) this.#idle.push(forwarding);
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
      // The upstream may answer one form of a question and not another (EDNS that a firewall drops).
      if (now < deadline) later.resolve(this.#ask(query, now, deadline));
      else {
        this.#left(1);
        later.resolve(unanswered);
      }
    }
  }

  /** Sends the query, unless the same question is under way in the same form or too often. */
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
    const forwarding = this.#idle.pop() ?? new Forwarding(this);
    forwarding.query = query;
    if (!passes) questions.add(forwarding);
    return forwarding.begin(query, this.#order(this.targets), now, deadline);
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
  new Error('i/o timeout while other queries for the same question were under way'),
  [{ code: EDE.OTHER, text: 'too many queries for the same question are under way' }],
);
const tooManySame = refused('too many queries for the same question are under way');
