/** Listener counters, which the listeners use themselves and export as metrics. */
import type { Counter, Registry } from '../metrics/registry.ts';
import type { Proto } from '../wire/query-message.ts';

/** A counter that can be read here and is also exported as a metric. */
class ListenerCount {
  value = 0;
  readonly #metric: { add(amount: number): void } | null;
  #alias: { readonly metric: { add(amount: number): void } } | null = null;

  constructor(metric: { add(amount: number): void } | null = null) {
    this.#metric = metric;
  }

  add(amount: number): void {
    this.value += amount;
    this.#metric?.add(amount);
    this.#alias?.metric.add(amount);
  }

  /**
   * Also counts in another metric from now on.
   * @returns a function that stops this, unless another metric has taken its place
   */
  countAlso(metric: { add(amount: number): void }): () => void {
    // A later call may pass the same metric, so this object identifies the latest call.
    const alias = { metric };
    this.#alias = alias;
    return () => {
      if (this.#alias === alias) this.#alias = null;
    };
  }
}

/** A listener's counters. These numbers only increase, except for `connections`, `handshakes` and `waiting`. */
export interface ListenerCounters extends Readonly<Record<keyof typeof families, ListenerCount>> {
  /** Counts a response that has this HTTP or gRPC status. */
  response(status: number): void;
}

/** Returns the counters for one of the listener's protocols. */
export type CountersOf = (proto: Proto) => ListenerCounters;

/** Names and help texts. Names that end in `_total` are counters, the others gauges. */
const families = {
  received: [
    'ndots_listener_received_total',
    'Number of datagrams, messages and requests received.',
  ],
  sent: ['ndots_listener_sent_total', 'Number of replies that were handed to the kernel.'],
  ignored: [
    'ndots_listener_ignored_total',
    'Number of messages that were not answered because they were too short or were replies.',
  ],
  rejected: [
    'ndots_listener_rejected_total',
    'Number of messages answered with FORMERR or NOTIMP (HTTPS: status 400) before any plugin ran.',
  ],
  cut: [
    'ndots_listener_cut_total',
    'Number of datagrams longer than the receive buffer, which are answered with FORMERR.',
  ],
  dropped: [
    'ndots_listener_dropped_total',
    'Number of replies that could not be sent: buffer full, client unreachable, or connection closed.',
  ],
  lost: [
    'ndots_listener_lost_total',
    'Number of datagrams that the kernel dropped because the socket buffer was full (batched UDP only).',
  ],
  stale: [
    'ndots_listener_stale_total',
    'Number of datagrams dropped because they had been in the socket for longer than clients wait (batched UDP only).',
  ],
  shed: ['ndots_listener_shed_total', 'Number of queries refused because too many were in flight.'],
  waiting: ['ndots_listener_waiting', 'Number of queries that are waiting for their replies.'],
  connections: ['ndots_listener_connections', 'Number of open connections.'],
  handshakes: ['ndots_listener_handshakes', 'Number of connections in the TLS handshake.'],
  accepted: [
    'ndots_listener_accepted_total',
    'Number of connections that became ready for queries.',
  ],
  evicted: [
    'ndots_listener_evicted_total',
    'Number of connections closed and proxy sessions dropped because there were too many or they used too much memory.',
  ],
  timedOut: [
    'ndots_listener_timed_out_total',
    'Number of connections and requests that timed out.',
  ],
  proxied: [
    'ndots_listener_proxied_total',
    'Number of connections and datagrams whose PROXY protocol header contained a client address.',
  ],
  proxyRefused: [
    'ndots_listener_proxy_refused_total',
    'Number of connections and datagrams refused because of their PROXY protocol header: not allowed, malformed, or too long.',
  ],
  failedHandshakes: [
    'ndots_listener_failed_handshakes_total',
    'Number of connections that ended during their TLS handshake.',
  ],
} as const;

/**
 * Creates the counters for one listen address. They are exported under its name, or not at all if there is no registry.
 */
export function listenerCounters(metrics: Registry | null, server: string): CountersOf {
  const known = new Map<Proto, ListenerCounters>();
  return (proto) => {
    let counters = known.get(proto);
    if (counters === undefined) known.set(proto, (counters = countersOf(metrics, server, proto)));
    return counters;
  };
}

function countersOf(metrics: Registry | null, server: string, proto: Proto): ListenerCounters {
  const labels = ['server', 'proto'] as const;
  const entries = Object.entries(families).map(([key, [name, help]]) => {
    const family = name.endsWith('_total')
      ? metrics?.counter(name, help, labels)
      : metrics?.gauge(name, help, labels);
    return [key, new ListenerCount(family?.with(server, proto) ?? null)];
  });
  const counts = Object.fromEntries(entries) as Record<keyof typeof families, ListenerCount>;
  return { ...counts, response: countResponses(metrics, server, proto) };
}

/** Metrics for response statuses by protocol. The name used for https is CoreDNS's. */
const responses: Partial<Record<Proto, readonly [name: string, help: string]>> = {
  https: [
    'coredns_dns_https_responses_total',
    'Counter of DoH responses per server and http status code.',
  ],
  grpc: [
    'ndots_dns_grpc_responses_total',
    'gRPC responses by status: 0 is OK, and values from 100 are HTTP statuses.',
  ],
};

/** There are few statuses, so each one's metric handle is cached. */
function countResponses(
  metrics: Registry | null,
  server: string,
  proto: Proto,
): (status: number) => void {
  const [name, help] = responses[proto] ?? ['', ''];
  const byStatus = new Map<number, Counter>();
  return (status) => {
    let counter = byStatus.get(status);
    if (counter === undefined) {
      if (metrics === null) return;
      counter = metrics.counter(name, help, ['server', 'status']).with(server, String(status));
      byStatus.set(status, counter);
    }
    counter.add(1);
  };
}
