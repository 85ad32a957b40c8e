/** A single `forward` query, from its first attempt to its reply. */
import { isLater, Later, type Maybe } from '../../base/maybe.ts';
import { passedThrough } from '../../runtime/memory-policy.ts';
import { UpstreamExchange, ExchangeError } from '../../transport/upstream/upstream-exchange.ts';
import { classify } from '../../wire/classify.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { ReadError } from '../../wire/reader.ts';
import type { Reply } from '../../wire/reply.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { gaveUp, overspent, type FailedAttempt } from './forward-failures.ts';
import type { UpstreamSetParts } from './upstream-set-parts.ts';
import type { ForwardUpstream } from './forward-upstream.ts';

/** Milliseconds from the first attempt to SERVFAIL; glibc gives up after the same time. */
export const DEADLINE_MS = 5000;
/** Longest wait for an upstream's packet budget, in ms. */
const BUDGET_WAIT_MS = 1000;
/** Pause in ms after a round where all upstreams failed at once, so that unlimited attempts do not spin. */
const ROUND_PAUSE_MS = 50;

/** The upstream set that owns a query and reuses the object once it is done. */
export interface UpstreamQueryOwner {
  readonly parts: UpstreamSetParts;
  over(upstreamQuery: UpstreamQuery): void;
  /** Answers the queries that waited for this reply. */
  share(reply: Maybe<Reply>, joined: readonly Later<Reply>[], queued: readonly QueuedQuery[]): void;
}

/** A query that waits for another one with the same question to get its reply. */
export interface QueuedQuery {
  readonly query: Query;
  readonly reply: Later<Reply>;
  /** Clock time in ms, including the time in the queue. */
  readonly deadline: number;
}

/**
 * Sends one query to one upstream after another until it gets a reply. The object is reused, so forwarding allocates
 * little apart from the reply.
 */
export class UpstreamQuery extends UpstreamExchange {
  /** The next query in the same bucket of `InFlightQuestions`. */
  nextSame: UpstreamQuery | null = null;
  readonly #owner: UpstreamQueryOwner;
  /** Queries that get the same reply, and queries that are sent once this one is done. */
  #joined: Later<Reply>[] = none;
  #queued: QueuedQuery[] = none;
  /** Upstreams in the order this query tries them. */
  #order: readonly ForwardUpstream[] = [];
  #index = 0;
  /** Number of upstreams skipped in this round because they are down. */
  #down = 0;
  #attempts = 0;
  #failed: FailedAttempt[] = none;
  /** Number of upstreams whose result code caused a failover. */
  #passedOver = 0;
  #deadline = 0;
  #roundBegan = 0;
  #upstream!: ForwardUpstream;
  #stream = false;
  /** The truncated reply, which is used if TCP fails, or undefined if no reply was truncated. */
  #cut: Reply | ReadError | undefined;
  #reply: Later<Reply> | null = null;

  constructor(owner: UpstreamQueryOwner) {
    super();
    this.#owner = owner;
  }

  /**
   * Sends a query that owns its bytes.
   * @returns the reply, which may be available at once
   */
  begin(
    query: Query,
    order: readonly ForwardUpstream[],
    now: number,
    deadline: number,
  ): Maybe<Reply> {
    const { maxAttempts } = this.#owner.parts;
    this.query = query;
    this.#order = order;
    this.#index = 0;
    this.#down = 0;
    this.#attempts = maxAttempts ?? 2 * order.length;
    this.#passedOver = 0;
    this.#deadline = deadline;
    this.#roundBegan = now;
    const reply = this.#proceed(now);
    if (reply === null) return (this.#reply = new Later());
    this.#end();
    return reply;
  }

  /** Returns the reply for another query that is identical as far as the upstream is concerned. */
  join(): Later<Reply> {
    const later = new Later<Reply>();
    if (this.#joined === none) this.#joined = [];
    this.#joined.push(later);
    return later;
  }

  /** Returns the reply to a query that is sent once this one is done. */
  queue(query: Query, deadline: number): Later<Reply> {
    const reply = new Later<Reply>();
    if (this.#queued === none) this.#queued = [];
    this.#queued.push({ query, reply, deadline });
    return reply;
  }

  override replied(
    bytes: Uint8Array,
    start: number,
    end: number,
    truncated: boolean,
    reused: boolean,
    now: number,
  ): void {
    try {
      if (this.#owner.parts.taps.length > 0) this.#tap(bytes, start, end);
      this.#upstream.took(this, bytes, start, reused, now);
      passedThrough(end - start);
      const reply = this.#judge(fromUpstream(bytes, start, end, 'forward'), truncated, now);
      if (reply !== null) this.#finish(reply);
    } catch (error) {
      this.#break(error);
    }
  }

  override failed(error: ExchangeError, now: number): void {
    try {
      if (this.#owner.parts.taps.length > 0) this.#tap(null, 0, 0);
      this.#upstream.missed(this);
      const cut = this.#cut;
      const reply = cut === undefined ? this.#missed(error, now) : this.#whatThereIs(cut, now);
      if (reply !== null) this.#finish(reply);
    } catch (failure) {
      this.#break(failure);
    }
  }

  #tap(bytes: Uint8Array | null, start: number, end: number): void {
    const { query, proto, startedAt: sentAt } = this;
    const { host, port } = this.#upstream.spec;
    const exchange = { query, host, port, proto, sentAt, reply: bytes, start, end };
    for (const tap of this.#owner.parts.taps) tap.exchanged(exchange);
  }

  /** @returns the outcome, or null if the exchange is not over */
  #judge(reply: Reply | ReadError, truncated: boolean, now: number): Maybe<Reply> | null {
    const cut = this.#cut;
    if (cut !== undefined && reply instanceof ReadError) return this.#whatThereIs(cut, now);
    if (!this.#stream && this.#upstream.plain && cut === undefined) {
      if (truncated || reply instanceof ReadError || reply.truncated)
        return this.#fetchWhole(reply, now);
    }
    return reply instanceof ReadError ? this.#missed(reply, now) : this.#took(reply, now);
  }

  #took(reply: Reply, now: number): Maybe<Reply> | null {
    const { failover, chained } = this.#owner.parts;
    this.query.notes?.set('forward/upstream', this.#upstream.to);
    if (failover.length > 0 && failover.includes(reply.rcode)) {
      if (this.#passedOver + 1 < this.#order.length) {
        this.#passedOver++;
        this.#cut = undefined;
        return this.#proceed(now);
      }
    }
    return chained ? this.#pass(reply) : reply;
  }

  #missed(error: Error, now: number): Reply | null {
    const { maxFails } = this.#owner.parts;
    const { to } = this.#upstream;
    if (this.#failed === none) this.#failed = [];
    this.#failed.push({ to, error });
    if (maxFails > 0 && error instanceof ExchangeError && error.failure !== 'local')
      this.#upstream.probe();
    if (this.#down < this.#order.length) return this.#proceed(now);
    return gaveUp(this.#failed, this.#order);
  }

  /**
   * Sends the query to the next upstream in order.
   * @returns null if the query was sent, or the result if no upstreams are left or the time is up
   */
  #proceed(now: number): Reply | null {
    const { maxFails, maxAttempts, failfast, metrics, random } = this.#owner.parts;
    const order = this.#order;
    const unlimited = maxAttempts === 0;
    while (order.length > 0 && now < this.#deadline) {
      if (!unlimited && this.#failed.length >= this.#attempts) break;
      if (this.#index >= order.length) {
        this.#index = 0;
        this.#down = 0;
        const began = this.#roundBegan;
        this.#roundBegan = now;
        if (this.#failed.length >= order.length && now - began < 1) return this.#pause();
      }
      let upstream = order[this.#index++]!;
      if (upstream.isDown(maxFails)) {
        if (++this.#down < order.length) continue;
        metrics.broken.add(1);
        if (failfast) break;
        // All of them are marked down, but perhaps only the probes are being lost.
        upstream = order[random.integer(order.length)]!;
      }
      return this.#ask(upstream.budget === null ? upstream : this.#within(upstream, now), now);
    }
    return gaveUp(this.#failed, order);
  }

  /**
   * Sends the query to this upstream, either immediately or as soon as the packet budget allows.
   * @returns the failure if that would be too late
   */
  #ask(upstream: ForwardUpstream, now: number): Reply | null {
    const { forceTcp, preferUdp, clock } = this.#owner.parts;
    this.#upstream = upstream;
    this.#stream = forceTcp || (!preferUdp && isStream(this.query));
    const { budget } = upstream;
    if (budget === null) {
      this.#send(now);
      return null;
    }
    const wait = budget.wait(now);
    if (wait > BUDGET_WAIT_MS || now + wait >= this.#deadline) {
      upstream.countOverspent();
      return overspent(upstream);
    }
    budget.spend(1, now);
    if (wait === 0) this.#send(now);
    else {
      upstream.countDelayed();
      clock.after(wait, () => this.#send(clock.now()));
    }
    return null;
  }

  #send(now: number): void {
    const left = this.#deadline - now;
    const { readTimeoutMs } = this.#owner.parts;
    this.#upstream.start(this, this.#stream, left < readTimeoutMs ? left : readTimeoutMs, now);
  }

  /** Returns this upstream, or a different one that has packet budget left. */
  #within(upstream: ForwardUpstream, now: number): ForwardUpstream {
    if (upstream.budget!.wait(now) === 0) return upstream;
    let soonest = upstream;
    for (const other of this.#order) {
      if (other.isDown(this.#owner.parts.maxFails) || other.budget === null) continue;
      if (other.budget.wait(now) < soonest.budget!.wait(now)) soonest = other;
    }
    return soonest;
  }

  #pause(): null {
    const { clock } = this.#owner.parts;
    clock.after(ROUND_PAUSE_MS, () => {
      const now = clock.now();
      this.#roundBegan = now;
      const reply = this.#proceed(now);
      if (reply !== null) this.#finish(reply);
    });
    return null;
  }

  /** Repeats the query over TCP, so that clients do not have to. */
  #fetchWhole(cut: Reply | ReadError, now: number): Maybe<Reply> | null {
    const { readTimeoutMs } = this.#owner.parts;
    const left = this.#deadline - now;
    this.#upstream.countTcpRetry();
    if (left <= 0) return this.#whatThereIs(cut, now);
    this.#cut = cut;
    this.#upstream.budget?.spend(1, now);
    this.#upstream.start(this, true, Math.min(readTimeoutMs, left), now);
    return null;
  }

  /** TCP failed, so this returns the truncated reply, or an empty one with TC. The client may retry. */
  #whatThereIs(cut: Reply | ReadError, now: number): Maybe<Reply> | null {
    if (!(cut instanceof ReadError) && cut.truncated) return this.#took(cut, now);
    const { writer } = this.#owner.parts;
    writer.reply(this.query, FLAG.TC | FLAG.RA);
    return writer.finish(RCODE.NOERROR, 'forward');
  }

  /** Returns the reply or, if `next` lists its result code, the next forward's reply. */
  #pass(reply: Reply): Maybe<Reply> {
    const { nextOn, nextOnNodata, next } = this.#owner.parts;
    if (nextOn.includes(reply.rcode)) return next(this.query);
    if (!nextOnNodata || reply.rcode !== RCODE.NOERROR || reply.truncated) return reply;
    const kind = classify(reply, this.query.type);
    return kind === 'nodata' || kind === 'empty' ? next(this.query) : reply;
  }

  #finish(reply: Maybe<Reply>): void {
    const later = this.#reply!;
    const joined = this.#joined;
    const queued = this.#queued;
    this.#end();
    if (joined === none && queued === none) return later.resolve(reply);
    // A pending reply now has several users.
    const shared = isLater(reply) ? reply.then((found) => found) : reply;
    later.resolve(shared);
    this.#owner.share(shared, joined, queued);
  }

  /** After an internal error, the waiting query gets that error. */
  #break(error: unknown): void {
    const later = this.#reply;
    const joined = this.#joined;
    const queued = this.#queued;
    this.#end();
    later?.reject(error);
    if (joined !== none || queued !== none)
      this.#owner.share(Promise.reject(error as Error), joined, queued);
  }

  #end(): void {
    this.#reply = null;
    this.#joined = none;
    this.#queued = none;
    this.#failed = none;
    this.#cut = undefined;
    this.#owner.over(this);
  }
}

/** An empty list that most queries share, so it must never be written to. */
const none: never[] = [];

function isStream({ proto }: Query): boolean {
  return proto !== 'udp' && proto !== 'internal';
}
