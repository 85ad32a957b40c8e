/** A single `grpc` query, from its first attempt to its reply. */
import { Later, type Maybe } from '../../base/maybe.ts';
import type { Clock } from '../../base/clock.ts';
import { passedThrough } from '../../runtime/memory-policy.ts';
import { GrpcFailure, STATUS } from '../../transport/grpc/grpc-failure.ts';
import {
  UpstreamExchange,
  type ExchangeError,
} from '../../transport/upstream/upstream-exchange.ts';
import type { Upstream } from '../../transport/upstream-address.ts';
import { EDE, FLAG, RCODE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { ReadError } from '../../wire/reader.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import type { MessageWriter } from '../../wire/writer.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import type { GrpcMetrics } from './grpc-counters.ts';

/** Time limit for a query, in milliseconds. */
const DEADLINE_MS = 5000;
/** Time limit in milliseconds for each of several upstreams, so that there is time to try the others. */
const TRY_MS = 2000;
/** Number of milliseconds for which an unreachable upstream is tried last. */
const SHUNNED_MS = 1000;

export interface GrpcTarget {
  readonly to: string;
  readonly upstream: Upstream;
  /** Clock time until which it is tried last. */
  shunnedUntil: number;
}

export interface AskingParts {
  readonly clock: Clock;
  readonly metrics: GrpcMetrics;
  readonly writer: MessageWriter;
  /**
   * Returns a function that replaces a missing reply or an NXDOMAIN for this name, or null if the client gets it
   * unchanged.
   */
  through(query: Query): ((query: Query) => Maybe<Reply>) | null;
}

/** Sends a query to one upstream after another, each once, until one replies or the time is up. */
export class GrpcExchange extends UpstreamExchange {
  readonly reply: Later<Reply> = new Later();
  readonly #parts: AskingParts;
  readonly #order: readonly GrpcTarget[];
  readonly #deadline: number;
  #index = 0;
  #target!: GrpcTarget;
  #error: Error = noHealthy;

  /** @param query owns its bytes */
  constructor(parts: AskingParts, query: Query, order: readonly GrpcTarget[], now: number) {
    super();
    this.#parts = parts;
    this.query = query;
    this.proto = 'grpc';
    this.#deadline = now + DEADLINE_MS;
    this.#order = order;
    parts.metrics.waiting.add(1);
    this.#proceed(now);
  }

  override replied(
    bytes: Uint8Array,
    start: number,
    end: number,
    _truncated: boolean,
    _reused: boolean,
    now: number,
  ): void {
    const { metrics } = this.#parts;
    const { to } = this.#target;
    passedThrough(end - start);
    const reply = fromUpstream(bytes, start, end, 'grpc');
    if (reply instanceof ReadError) return this.#missed(reply, now);
    metrics.replied(to, bytes[start + 3]! & FLAG.RCODE, now - this.startedAt);
    this.#finish(reply);
  }

  override failed(error: ExchangeError, now: number): void {
    const { cause } = error;
    // CoreDNS's service name, because other services do not have this method.
    if (cause instanceof GrpcFailure && cause.code === STATUS.NOT_FOUND) {
      const { writer } = this.#parts;
      writer.reply(this.query, FLAG.RA);
      return this.#finish(writer.finish(RCODE.NXDOMAIN, 'grpc'));
    }
    if (error.failure !== 'http' && error.failure !== 'local')
      this.#target.shunnedUntil = now + SHUNNED_MS;
    this.#missed(error, now);
  }

  #missed(error: Error, now: number): void {
    this.#parts.metrics.failed(this.#target.to);
    this.#error = error;
    this.#proceed(now);
  }

  #proceed(now: number): void {
    const left = this.#deadline - now;
    const target = left > 0 ? this.#order[this.#index++] : undefined;
    if (target === undefined) return this.#giveUp();
    this.#target = target;
    this.startedAt = now;
    const last = this.#index === this.#order.length;
    target.upstream.start(this, last ? left : Math.min(left, TRY_MS), now);
  }

  #giveUp(): void {
    const through = this.#parts.through(this.query);
    this.#end(
      through === null
        ? failure(RCODE.SERVFAIL, 'grpc', this.#error, [
            { code: EDE.NO_REACHABLE_AUTHORITY, text: 'no upstream replied' },
          ])
        : through(this.query),
    );
  }

  #finish(reply: Reply): void {
    this.query.notes?.set('grpc/upstream', this.#target.to);
    const through = reply.rcode === RCODE.NXDOMAIN ? this.#parts.through(this.query) : null;
    this.#end(through === null ? reply : through(this.query));
  }

  #end(reply: Maybe<Reply>): void {
    this.#parts.metrics.waiting.add(-1);
    this.reply.resolve(reply);
  }
}

/** Orders the upstreams, moving any that were recently unreachable to the end. */
export function reachableFirst(targets: readonly GrpcTarget[], now: number): readonly GrpcTarget[] {
  if (!targets.some(({ shunnedUntil }) => shunnedUntil > now)) return targets;
  const isShunned = ({ shunnedUntil }: GrpcTarget): boolean => shunnedUntil > now;
  return [...targets.filter((target) => !isShunned(target)), ...targets.filter(isShunned)];
}

const noHealthy = new Error('no healthy gRPC proxies');
