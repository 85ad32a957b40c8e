/** Metrics for `forward`. */
import { timeBuckets } from '../../metrics/buckets.ts';
import type { UpstreamCounters } from '../../transport/upstream-address.ts';
import type { Counter, Gauge, Histogram, Registry } from '../../metrics/registry.ts';

const NAME = 'forward';

/** Metrics for forward and for its upstream connections, which CoreDNS calls `proxy`. */
export class ForwardMetrics {
  readonly broken: Counter;
  readonly rejects: Counter;
  /** Queries that waited for an identical one. */
  readonly shared: Counter;
  readonly waiting: Gauge;
  readonly #families;

  constructor(metrics: Registry) {
    this.broken = metrics.counter(
      'coredns_forward_healthcheck_broken_total',
      'Counter of the number of complete failures of the healthchecks.',
    );
    this.rejects = metrics.counter(
      'coredns_forward_max_concurrent_rejects_total',
      'Counter of the number of queries rejected because the concurrent queries were at maximum.',
    );
    this.shared = metrics.counter(
      'ndots_forward_shared_total',
      'Queries that waited for the reply to an identical in-flight query.',
    );
    this.waiting = metrics.gauge(
      'ndots_forward_waiting_queries',
      'In-flight queries to upstreams (limited by max_concurrent).',
    );
    this.#families = {
      timeouts: metrics.counter('ndots_forward_timeouts_total', 'Tries that timed out.', ['to']),
      strays: metrics.counter(
        'ndots_forward_strays_total',
        'Messages from the upstream that did not match an in-flight query because they were late or forged.',
        ['to'],
      ),
      paced: metrics.counter(
        'ndots_forward_paced_total',
        'Queries that were delayed until the upstream had answered earlier ones (max_burst).',
        ['to'],
      ),
      inFlightRejects: metrics.counter(
        'ndots_forward_in_flight_rejects_total',
        'Queries not sent because max_concurrent queries to the upstream were in flight over HTTPS.',
        ['to'],
      ),
      sockets: metrics.gauge(
        'ndots_forward_sockets',
        'Open UDP sockets and connections to the upstream.',
        ['to'],
      ),
      durations: metrics.histogram(
        'coredns_proxy_request_duration_seconds',
        'Histogram of the time each request took.',
        ['proxy_name', 'to', 'rcode'],
        timeBuckets,
      ),
      healthFailures: metrics.counter(
        'coredns_proxy_healthcheck_failures_total',
        'Counter of the number of failed healthchecks.',
        ['proxy_name', 'to'],
      ),
      connHits: metrics.counter(
        'coredns_proxy_conn_cache_hits_total',
        'Counter of connection cache hits per upstream and protocol.',
        ['proxy_name', 'to', 'proto'],
      ),
      connMisses: metrics.counter(
        'coredns_proxy_conn_cache_misses_total',
        'Counter of connection cache misses per upstream and protocol.',
        ['proxy_name', 'to', 'proto'],
      ),
      tcpRetries: metrics.counter(
        'ndots_forward_tcp_retries_total',
        'Queries retried over TCP because the reply over UDP was truncated.',
        ['to'],
      ),
      headroom: metrics.gauge(
        'ndots_forward_budget_headroom_packets',
        "Packets in the upstream's budget that were left unused in the last second (max_pps).",
        ['to'],
      ),
      delayed: metrics.counter(
        'ndots_forward_budget_delayed_total',
        'Queries that waited for the packet budget.',
        ['to'],
      ),
      overspent: metrics.counter(
        'ndots_forward_budget_rejects_total',
        'Queries not sent because the packet budget was used up.',
        ['to'],
      ),
    };
  }

  duration(to: string, rcode: string): Histogram {
    return this.#families.durations.with(NAME, to, rcode);
  }

  healthFailures(to: string): Counter {
    return this.#families.healthFailures.with(NAME, to);
  }

  connections(to: string, proto: string): { readonly hits: Counter; readonly misses: Counter } {
    return {
      hits: this.#families.connHits.with(NAME, to, proto),
      misses: this.#families.connMisses.with(NAME, to, proto),
    };
  }

  upstream(to: string): UpstreamCounters {
    return {
      timeouts: this.#families.timeouts.with(to),
      strays: this.#families.strays.with(to),
      paced: this.#families.paced.with(to),
      rejects: this.#families.inFlightRejects.with(to),
      sockets: this.#families.sockets.with(to),
    };
  }

  tcpRetries(to: string): Counter {
    return this.#families.tcpRetries.with(to);
  }

  budget(to: string): {
    readonly headroom: Gauge;
    readonly delayed: Counter;
    readonly rejects: Counter;
  } {
    return {
      headroom: this.#families.headroom.with(to),
      delayed: this.#families.delayed.with(to),
      rejects: this.#families.overspent.with(to),
    };
  }
}
