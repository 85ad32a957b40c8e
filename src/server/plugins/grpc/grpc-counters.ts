/** Metrics for `grpc`. */
import { timeBuckets } from '../../metrics/buckets.ts';
import type { Counter, Family, Gauge, Histogram, Registry } from '../../metrics/registry.ts';
import type { UpstreamCounters } from '../../transport/upstream-address.ts';
import { rcodeName } from '../../wire/iana.ts';

export class GrpcMetrics {
  readonly waiting: Gauge;
  readonly #requests: Family<readonly ['to'], Counter>;
  readonly #responses: Family<readonly ['rcode', 'to'], Counter>;
  readonly #durations: Family<readonly ['to'], Histogram>;
  readonly #timeouts: Family<readonly ['to'], Counter>;
  readonly #failures: Family<readonly ['to'], Counter>;
  readonly #rejects: Family<readonly ['to'], Counter>;
  readonly #connections: Family<readonly ['to'], Gauge>;

  constructor(metrics: Registry) {
    this.#requests = metrics.counter(
      'coredns_grpc_requests_total',
      'Counter of requests made per upstream.',
      ['to'],
    );
    this.#responses = metrics.counter(
      'coredns_grpc_responses_total',
      'Counter of requests made per upstream.',
      ['rcode', 'to'],
    );
    this.#durations = metrics.histogram(
      'coredns_grpc_request_duration_seconds',
      'Histogram of the time each request took.',
      ['to'],
      timeBuckets,
    );
    this.#timeouts = metrics.counter('ndots_grpc_timeouts_total', 'Tries that timed out.', ['to']);
    this.#failures = metrics.counter(
      'ndots_grpc_failures_total',
      'Failed tries, including timeouts.',
      ['to'],
    );
    this.#rejects = metrics.counter(
      'ndots_grpc_in_flight_rejects_total',
      'Queries not sent because max_concurrent queries to the upstream were in flight.',
      ['to'],
    );
    this.#connections = metrics.gauge(
      'ndots_grpc_connections',
      'Open connections to the upstream.',
      ['to'],
    );
    this.waiting = metrics
      .gauge('ndots_grpc_waiting_queries', 'In-flight queries to upstreams.', [])
      .with();
  }

  upstream(to: string): UpstreamCounters {
    return {
      timeouts: this.#timeouts.with(to),
      // A gRPC connection has neither stray replies nor pacing.
      strays: none,
      paced: none,
      rejects: this.#rejects.with(to),
      sockets: this.#connections.with(to),
    };
  }

  failed(to: string): void {
    this.#failures.with(to).add(1);
  }

  /** @param rcode four bits from the header */
  replied(to: string, rcode: number, tookMs: number): void {
    this.#requests.with(to).add(1);
    this.#responses.with(rcodeName(rcode), to).add(1);
    this.#durations.with(to).observe(tookMs / 1000);
  }
}

const none: Counter = {
  add() {
    // It cannot happen.
  },
};
