/** Counters of listeners, for their own use and for the metrics. */
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
   * @returns a function that stops it, unless another metric has replaced it
   */
  countAlso(metric: { add(amount: number): void }): () => void {
    // A later call may pass the same metric: this object identifies the latest call.
    const alias = { metric };
    this.#alias = alias;
    return () => {
      if (this.#alias === alias) this.#alias = null;
    };
  }
}

/**
 * The counters of a listener: numbers that only grow, except `connections`, `handshakes` and
 * `waiting`.
 */
export interface ListenerCounters extends Readonly<Record<keyof typeof families, ListenerCount>> {
  /** Counts a response with this HTTP or gRPC status. */
  response(status: number): void;
}

/** Returns the counters of a protocol that a listener serves. */
export type CountersOf = (proto: Proto) => ListenerCounters;

const families = {
  received: ['counter', 'ndots_listener_received_total', 'Datagrams, messages and requests.'],
  sent: ['counter', 'ndots_listener_sent_total', 'Replies that were handed to the kernel.'],
  ignored: [
    'counter',
    'ndots_listener_ignored_total',
    'Messages that get no reply: too short, or replies themselves.',
  ],
  rejected: [
    'counter',
    'ndots_listener_rejected_total',
    'Messages answered FORMERR or NOTIMP (HTTPS: status 400) before any plugin.',
  ],
  cut: [
    'counter',
    'ndots_listener_cut_total',
    'Datagrams longer than the receive buffer, answered FORMERR.',
  ],
  dropped: [
    'counter',
    'ndots_listener_dropped_total',
    'Replies that could not be sent: buffer full, client unreachable, connection closed.',
  ],
  lost: [
    'counter',
    'ndots_listener_lost_total',
    'Datagrams that the kernel dropped because the socket buffer was full (batched UDP only).',
  ],
  stale: [
    'counter',
    'ndots_listener_stale_total',
    'Datagrams that were dropped because they had waited in the socket for longer than clients wait (batched UDP only).',
  ],
  shed: ['counter', 'ndots_listener_shed_total', 'Queries refused because too many were waiting.'],
  waiting: ['gauge', 'ndots_listener_waiting', 'Queries that wait for their replies.'],
  connections: ['gauge', 'ndots_listener_connections', 'Connections that are open.'],
  handshakes: ['gauge', 'ndots_listener_handshakes', 'Connections in their TLS handshake.'],
  accepted: [
    'counter',
    'ndots_listener_accepted_total',
    'Connections that were ready for queries.',
  ],
  evicted: [
    'counter',
    'ndots_listener_evicted_total',
    'Connections closed, and clients of a proxy dropped, because there were too many or they used too much memory.',
  ],
  timedOut: [
    'counter',
    'ndots_listener_timed_out_total',
    'Connections closed because a time limit passed.',
  ],
  proxied: [
    'counter',
    'ndots_listener_proxied_total',
    'Connections and datagrams whose client a proxy has named (proxyproto).',
  ],
  proxyRefused: [
    'counter',
    'ndots_listener_proxy_refused_total',
    'Connections and datagrams refused for their header of the PROXY protocol: not allowed, broken, too long.',
  ],
  failedHandshakes: [
    'counter',
    'ndots_listener_failed_handshakes_total',
    'Connections that ended during their TLS handshake.',
  ],
} as const;

/**
 * The counters of one listen address, exported under its name; without a registry they are not
 * exported.
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
  const entries = Object.entries(families).map(([key, [kind, name, help]]) => [
    key,
    new ListenerCount(metrics?.[kind](name, help, ['server', 'proto']).with(server, proto) ?? null),
  ]);
  const counts = Object.fromEntries(entries) as Record<keyof typeof families, ListenerCount>;
  return { ...counts, response: countResponses(metrics, server, proto) };
}

/** The metric of response statuses by protocol; the name for https is CoreDNS's. */
const responses: Partial<Record<Proto, readonly [name: string, help: string]>> = {
  https: [
    'coredns_dns_https_responses_total',
    'Counter of DoH responses per server and http status code.',
  ],
  grpc: [
    'ndots_dns_grpc_responses_total',
    'Responses over gRPC by status: 0 is OK; 100 and more are HTTP statuses.',
  ],
};

/** There are few statuses, so each keeps its metric handle. */
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
