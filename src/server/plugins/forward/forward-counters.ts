/** Metrics for `forward`. */
import { timeBuckets } from '../../metrics/buckets.ts';
import type { UpstreamCounters } from '../../transport/upstream-address.ts';
import type { Counter, Family, Gauge, Histogram, Registry } from '../../metrics/registry.ts';

const NAME = 'forward';

/** Metrics for forward and for its upstream connections, which CoreDNS calls `proxy`. */
export class ForwardMetrics {
  readonly broken: Counter;
  readonly rejects: Counter;
  /** Queries that waited for an identical one. */
  readonly shared: Counter;
  readonly waiting: Gauge;
  readonly #timeouts: Family<readonly ['to'], Counter>;
  readonly #strays: Family<readonly ['to'], Counter>;
  readonly #paced: Family<readonly ['to'], Counter>;
  readonly #inFlightRejects: Family<readonly ['to'], Counter>;
  readonly #sockets: Family<readonly ['to'], Gauge>;
  readonly #durations: Family<readonly ['proxy_name', 'to', 'rcode'], Histogram>;
  readonly #healthFailures: Family<readonly ['proxy_name', 'to'], Counter>;
  readonly #connHits: Family<readonly ['proxy_name', 'to', 'proto'], Counter>;
  readonly #connMisses: Family<readonly ['proxy_name', 'to', 'proto'], Counter>;
  readonly #tcpRetries: Family<readonly ['to'], Counter>;
  readonly #headroom: Family<readonly ['to'], Gauge>;
  readonly #delayed: Family<readonly ['to'], Counter>;
  readonly #overspent: Family<readonly ['to'], Counter>;

  constructor(metrics: Registry) {
    this.broken = metrics
      .counter(
        'coredns_forward_healthcheck_broken_total',
        'Counter of the number of complete failures of the healthchecks.',
        [],
      )
      .with();
    this.rejects = metrics
      .counter(
        'coredns_forward_max_concurrent_rejects_total',
        'Counter of the number of queries rejected because the concurrent queries were at maximum.',
        [],
      )
      .with();
    this.shared = metrics
      .counter(
        'ndots_forward_shared_total',
        'Queries that waited for the reply to an identical in-flight query.',
        [],
      )
      .with();
    this.waiting = metrics
      .gauge(
        'ndots_forward_waiting_queries',
        'In-flight queries to upstreams (limited by max_concurrent).',
        [],
      )
      .with();
    this.#timeouts = metrics.counter('ndots_forward_timeouts_total', 'Tries that timed out.', [
      'to',
    ]);
    this.#strays = metrics.counter(
      'ndots_forward_strays_total',
      'Messages from the upstream that did not match an in-flight query because they were late or forged.',
      ['to'],
    );
    this.#paced = metrics.counter(
      'ndots_forward_paced_total',
      'Queries that were delayed until the upstream had answered earlier ones (max_burst).',
      ['to'],
    );
    this.#inFlightRejects = metrics.counter(
      'ndots_forward_in_flight_rejects_total',
      'Queries not sent because max_concurrent queries to the upstream were in flight over HTTPS.',
      ['to'],
    );
    this.#sockets = metrics.gauge(
      'ndots_forward_sockets',
      'Open UDP sockets and connections to the upstream.',
      ['to'],
    );
    this.#durations = metrics.histogram(
      'coredns_proxy_request_duration_seconds',
      'Histogram of the time each request took.',
      ['proxy_name', 'to', 'rcode'],
      timeBuckets,
    );
    this.#healthFailures = metrics.counter(
      'coredns_proxy_healthcheck_failures_total',
      'Counter of the number of failed healthchecks.',
      ['proxy_name', 'to'],
    );
    this.#connHits = metrics.counter(
      'coredns_proxy_conn_cache_hits_total',
      'Counter of connection cache hits per upstream and protocol.',
      ['proxy_name', 'to', 'proto'],
    );
    this.#connMisses = metrics.counter(
      'coredns_proxy_conn_cache_misses_total',
      'Counter of connection cache misses per upstream and protocol.',
      ['proxy_name', 'to', 'proto'],
    );
    this.#tcpRetries = metrics.counter(
      'ndots_forward_tcp_retries_total',
      'Queries retried over TCP because the reply over UDP was truncated.',
      ['to'],
    );
    this.#headroom = metrics.gauge(
      'ndots_forward_budget_headroom_packets',
      "Packets in the upstream's budget that were left unused in the last second (max_pps).",
      ['to'],
    );
    this.#delayed = metrics.counter(
      'ndots_forward_budget_delayed_total',
      'Queries that waited for the packet budget.',
      ['to'],
    );
    this.#overspent = metrics.counter(
      'ndots_forward_budget_rejects_total',
      'Queries not sent because the packet budget was used up.',
      ['to'],
    );
  }

  duration(to: string, rcode: string): Histogram {
    return this.#durations.with(NAME, to, rcode);
  }

  healthFailures(to: string): Counter {
    return this.#healthFailures.with(NAME, to);
  }

  connections(to: string, proto: string): { readonly hits: Counter; readonly misses: Counter } {
    return {
      hits: this.#connHits.with(NAME, to, proto),
      misses: this.#connMisses.with(NAME, to, proto),
    };
  }

  upstream(to: string): UpstreamCounters {
    return {
      timeouts: this.#timeouts.with(to),
      strays: this.#strays.with(to),
      paced: this.#paced.with(to),
      rejects: this.#inFlightRejects.with(to),
      sockets: this.#sockets.with(to),
    };
  }

  tcpRetries(to: string): Counter {
    return this.#tcpRetries.with(to);
  }

  budget(to: string): {
    readonly headroom: Gauge;
    readonly delayed: Counter;
    readonly rejects: Counter;
  } {
    return {
      headroom: this.#headroom.with(to),
      delayed: this.#delayed.with(to),
      rejects: this.#overspent.with(to),
    };
  }
}
