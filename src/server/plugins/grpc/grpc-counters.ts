/** Metrics for `grpc`. */
import { timeBuckets } from '../../metrics/buckets.ts';
import type { Counter, Gauge, Registry } from '../../metrics/registry.ts';
import type { UpstreamCounters } from '../../transport/upstream-address.ts';
import { rcodeName } from '../../wire/iana.ts';

export class GrpcMetrics {
  readonly waiting: Gauge;
  readonly #families;

  constructor(metrics: Registry) {
    this.#families = {
      requests: metrics.counter(
        'coredns_grpc_requests_total',
        'Counter of requests made per upstream.',
        ['to'],
      ),
      responses: metrics.counter(
        'coredns_grpc_responses_total',
        'Counter of requests made per upstream.',
        ['rcode', 'to'],
      ),
      durations: metrics.histogram(
        'coredns_grpc_request_duration_seconds',
        'Histogram of the time each request took.',
        ['to'],
        timeBuckets,
      ),
      timeouts: metrics.counter('ndots_grpc_timeouts_total', 'Tries that timed out.', ['to']),
      failures: metrics.counter('ndots_grpc_failures_total', 'Failed tries, including timeouts.', [
        'to',
      ]),
      rejects: metrics.counter(
        'ndots_grpc_in_flight_rejects_total',
        'Queries not sent because max_concurrent queries to the upstream were in flight.',
        ['to'],
      ),
      connections: metrics.gauge('ndots_grpc_connections', 'Open connections to the upstream.', [
        'to',
      ]),
    };
    this.waiting = metrics.gauge('ndots_grpc_waiting_queries', 'In-flight queries to upstreams.');
  }

  upstream(to: string): UpstreamCounters {
    return {
      timeouts: this.#families.timeouts.with(to),
      // A gRPC connection has neither stray replies nor pacing.
      strays: none,
      paced: none,
      rejects: this.#families.rejects.with(to),
      sockets: this.#families.connections.with(to),
    };
  }

  failed(to: string): void {
    this.#families.failures.with(to).add(1);
  }

  /** @param rcode four bits from the header */
  replied(to: string, rcode: number, tookMs: number): void {
    this.#families.requests.with(to).add(1);
    this.#families.responses.with(rcodeName(rcode), to).add(1);
    this.#families.durations.with(to).observe(tookMs / 1000);
  }
}

const none: Counter = {
  add() {
    // It cannot happen.
  },
};
