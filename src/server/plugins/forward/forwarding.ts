/** One query of `forward`, from its first try to its reply. */
import { isLater, Later, type Maybe } from '../../base/maybe.ts';
import { passedThrough } from '../../runtime/settle-memory.ts';
import { UpstreamExchange, ExchangeError } from '../../transport/upstream/upstream-exchange.ts';
import { classify } from '../../wire/classify.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { ReadError } from '../../wire/reader.ts';
import type { Reply } from '../../wire/reply.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { gaveUp, overspent, type FailedAttempt } from './outcome.ts';
import type { ForwarderParts } from './forwarder-parts.ts';
import type { ForwardTarget } from './forward-target.ts';

/** A query is tried for so long; glibc's patience ends then, too. */
export const DEADLINE_MS = 5000;
/** A query waits at most so long for the packet budget of an upstream. */
const BUDGET_WAIT_MS = 1000;
/**
 * A pause after a whole round of upstreams that all failed at once, so that unlimited tries do not
 * spin.
 */
const ROUND_PAUSE_MS = 50;

/** What a forwarding belongs to, and goes back to when it is over. */
export interface ForwardingHost {
  readonly parts: ForwarderParts;
  over(forwarding: Forwarding): void;
  /** Answers those that waited for this reply. */
  share(reply: Maybe<Reply>, joined: readonly Later<Reply>[], queued: readonly QueuedQuery[]): void;
}

/** A query that may not be sent before another one of its question has its reply. */
export interface QueuedQuery {
  readonly query: Query;
  readonly reply: Later<Reply>;
  /** Until when it is tried, the clock's ms; the time in the queue counts. */
  readonly deadline: number;
}

/**
 * One query on its way from upstream to upstream until there is a reply (reference: 6.2). It is
 * used again for another query when it is over: forwarding leaves hardly any garbage but the reply.
 */
export class Forwarding extends UpstreamExchange {
  /** The next one in the same place of the host's table. */
  nextSame: Forwarding | null = null;
  readonly #host: ForwardingHost;
  /** Queries that get the reply to this one, and those that follow it. */
  #joined: Later<Reply>[] = none;
  #queued: QueuedQuery[] = none;
  /** The upstreams in the order in which this query tries them. */
  #order: readonly ForwardTarget[] = [];
  #index = 0;
  /** Upstreams of this round that were passed over because they are down. */
  #down = 0;
  #attempts = 0;
  #failed: FailedAttempt[] = none;
  /** Upstreams whose result code made it ask another one. */
  #passedOver = 0;
  #deadline = 0;
  #roundBegan = 0;
  #target!: ForwardTarget;
  #stream = false;
  /** What there is if the whole reply cannot be had over TCP; undefined: nothing has been cut. */
  #cut: Reply | ReadError | undefined;
  #reply: Later<Reply> | null = null;

  constructor(host: ForwardingHost) {
    super();
    this.#host = host;
  }

  /** Begins with a query that owns its bytes. @returns the reply, which may have come at once */
  begin(
    query: Query,
    order: readonly ForwardTarget[],
    now: number,
    deadline: number,
  ): Maybe<Reply> {
    const { maxAttempts } = this.#host.parts;
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

  /** The reply for one more query that asks the same in every respect. */
  join(): Later<Reply> {
    const later = new Later<Reply>();
    if (this.#joined === none) this.#joined = [];
    this.#joined.push(later);
    return later;
  }

  /** The reply to a query that is sent when this one is over. */
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
      if (this.#host.parts.taps.length > 0) this.#tap(bytes, start, end);
      this.#target.took(this, bytes, start, reused, now);
      passedThrough(end - start);
      const reply = this.#judge(fromUpstream(bytes, start, end, 'forward'), truncated, now);
      if (reply !== null) this.#finish(reply);
    } catch (error) {
      this.#break(error);
    }
  }

  override failed(error: ExchangeError, now: number): void {
    try {
      if (this.#host.parts.taps.length > 0) this.#tap(null, 0, 0);
      this.#target.missed(this);
      const cut = this.#cut;
      const reply = cut === undefined ? this.#missed(error, now) : this.#whatThereIs(cut, now);
      if (reply !== null) this.#finish(reply);
    } catch (failure) {
      this.#break(failure);
    }
  }

  /** Reports a finished exchange to all listeners. */
  #tap(bytes: Uint8Array | null, start: number, end: number): void {
    const { query, proto, startedAt: sentAt } = this;
    const { host, port } = this.#target.upstream;
    const exchange = { query, host, port, proto, sentAt, reply: bytes, start, end };
    for (const tap of this.#host.parts.taps) tap.exchanged(exchange);
  }

  /** @returns the outcome; null: the exchange continues */
  #judge(reply: Reply | ReadError, truncated: boolean, now: number): Maybe<Reply> | null {
    const cut = this.#cut;
    if (cut !== undefined && reply instanceof ReadError) return this.#whatThereIs(cut, now);
    if (!this.#stream && this.#target.plain && cut === undefined) {
      if (truncated || reply instanceof ReadError || reply.truncated)
        return this.#fetchWhole(reply, now);
    }
    return reply instanceof ReadError ? this.#missed(reply, now) : this.#took(reply, now);
  }

  #took(reply: Reply, now: number): Maybe<Reply> | null {
    const { failover, chained } = this.#host.parts;
    this.query.notes?.set('forward/upstream', this.#target.to);
    if (failover.length > 0 && failover.includes(reply.rcode)) {
      if (this.#passedOver + 1 < this.#order.length) {
        this.#passedOver++;
        this.#cut = undefined;
        return this.#proceed(now);
      }
    }
    return chained ? this.#pass(reply) : reply;
  }

  /** A try that failed. */
  #missed(error: Error, now: number): Reply | null {
    const { maxFails } = this.#host.parts;
    const { to } = this.#target;
    if (this.#failed === none) this.#failed = [];
    this.#failed.push({ to, error });
    if (maxFails > 0 && error instanceof ExchangeError && error.failure !== 'local')
      this.#target.probe();
    if (this.#down < this.#order.length) return this.#proceed(now);
    return gaveUp(this.#failed, this.#order);
  }

  /**
   * Asks the next upstream in order.
   * @returns the result if there is none left or the time is up; null: it was asked
   */
  #proceed(now: number): Reply | null {
    const { maxFails, maxAttempts, failfast, metrics, random } = this.#host.parts;
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
      let target = order[this.#index++]!;
      if (target.isDown(maxFails)) {
        if (++this.#down < order.length) continue;
        metrics.broken.add(1);
        if (failfast) break;
        // All are down: perhaps it is the probes that do not get through.
        target = order[random.integer(order.length)]!;
      }
      return this.#ask(target.budget === null ? target : this.#within(target, now), now);
    }
    return gaveUp(this.#failed, order);
  }

  /**
   * Asks this upstream, now or when its packet budget allows.
   * @returns the end, if that would be too late
   */
  #ask(target: ForwardTarget, now: number): Reply | null {
    const { forceTcp, preferUdp, clock } = this.#host.parts;
    this.#target = target;
    this.#stream = forceTcp || (!preferUdp && isStream(this.query));
    const { budget } = target;
    if (budget === null) {
      this.#send(now);
      return null;
    }
    const wait = budget.wait(now);
    if (wait > BUDGET_WAIT_MS || now + wait >= this.#deadline) {
      target.countOverspent();
      return overspent(target);
    }
    budget.spend(1, now);
    if (wait === 0) this.#send(now);
    else {
      target.countDelayed();
      clock.after(wait, () => this.#send(clock.now()));
    }
    return null;
  }

  #send(now: number): void {
    const left = this.#deadline - now;
    const { readTimeoutMs } = this.#host.parts;
    this.#target.start(this, this.#stream, left < readTimeoutMs ? left : readTimeoutMs, now);
  }

  /** The upstream itself, or one in its place whose packet budget is not used up. */
  #within(target: ForwardTarget, now: number): ForwardTarget {
    if (target.budget!.wait(now) === 0) return target;
    let soonest = target;
    for (const other of this.#order) {
      if (other.isDown(this.#host.parts.maxFails) || other.budget === null) continue;
      if (other.budget.wait(now) < soonest.budget!.wait(now)) soonest = other;
    }
    return soonest;
  }

  #pause(): null {
    const { clock } = this.#host.parts;
    clock.after(ROUND_PAUSE_MS, () => {
      const now = clock.now();
      this.#roundBegan = now;
      const reply = this.#proceed(now);
      if (reply !== null) this.#finish(reply);
    });
    return null;
  }

  /**
   * The reply was cut, or did not fit its datagram: asks for the whole over TCP here, rather than
   * have each client do it.
   */
  #fetchWhole(cut: Reply | ReadError, now: number): Maybe<Reply> | null {
    const { readTimeoutMs } = this.#host.parts;
    const left = this.#deadline - now;
    this.#target.countTcpRetry();
    if (left <= 0) return this.#whatThereIs(cut, now);
    this.#cut = cut;
    this.#target.budget?.spend(1, now);
    this.#target.start(this, true, Math.min(readTimeoutMs, left), now);
    return null;
  }

  /**
   * The upstream does not do TCP: the client gets what there is, or an empty reply with TC, and may
   * try on its own.
   */
  #whatThereIs(cut: Reply | ReadError, now: number): Maybe<Reply> | null {
    if (!(cut instanceof ReadError) && cut.truncated) return this.#took(cut, now);
    const { writer } = this.#host.parts;
    writer.reply(this.query, FLAG.TC | FLAG.RA);
    return writer.finish(RCODE.NOERROR, 'forward');
  }

  /** The reply, or the next forward's if this one is for passing on. */
  #pass(reply: Reply): Maybe<Reply> {
    const { nextOn, nextOnNodata, next } = this.#host.parts;
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
    // One that is yet to come has several users now.
    const shared = isLater(reply) ? reply.then((found) => found) : reply;
    later.resolve(shared);
    this.#host.share(shared, joined, queued);
  }

  /** Handles a bug: the waiting query gets the error. */
  #break(error: unknown): void {
    const later = this.#reply;
    const joined = this.#joined;
    const queued = this.#queued;
    this.#end();
    later?.reject(error);
    if (joined !== none || queued !== none)
      this.#host.share(Promise.reject(error as Error), joined, queued);
  }

  #end(): void {
    this.#reply = null;
    this.#joined = none;
    this.#queued = none;
    this.#failed = none;
    this.#cut = undefined;
    this.#host.over(this);
  }
}

/** The lists of a query that has none, which is the usual case. Never written to. */
const none: never[] = [];

function isStream({ proto }: Query): boolean {
  return proto !== 'udp' && proto !== 'internal';
}
