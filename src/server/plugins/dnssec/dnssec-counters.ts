/** Metrics for online signing. */
import type { Counter, Gauge, Registry } from '../../metrics/registry.ts';
import { perRoute } from '../../engine/contract/per-route.ts';
import type { Route } from '../../transport/query.ts';

export interface DnssecCounters {
  readonly hits: Counter;
  readonly misses: Counter;
  readonly refused: Counter;
  readonly entries: Gauge;
  readonly bytes: Gauge;
  readonly shown: [entries: number, bytes: number];
}

/** One directive's metrics, with one set for each queried listen address. */
export class DnssecMetrics {
  readonly signing: Gauge;
  readonly #make: (server: string) => DnssecCounters;
  readonly #byServer = new Map<string, DnssecCounters>();
  #closed = false;

  constructor(metrics: Registry) {
    const plain = ['server'] as const;
    const hits = metrics.counter(
      'coredns_dnssec_cache_hits_total',
      'The count of cache hits.',
      plain,
    );
    const misses = metrics.counter(
      'coredns_dnssec_cache_misses_total',
      'The count of cache misses.',
      plain,
    );
    const entries = metrics.gauge(
      'coredns_dnssec_cache_entries',
      'The number of elements in the dnssec cache.',
      ['server', 'type'],
    );
    const bytes = metrics.gauge(
      'ndots_dnssec_reply_bytes',
      'Bytes of memory used by complete signed replies.',
      plain,
    );
    const refused = metrics.counter(
      'ndots_dnssec_refused_total',
      'Queries answered with REFUSED because too many RRsets were being signed.',
      plain,
    );
    this.signing = metrics.gauge('ndots_dnssec_signing', 'RRsets that are currently being signed.');
    this.#make = (server) => ({
      hits: hits.with(server),
      misses: misses.with(server),
      refused: refused.with(server),
      entries: entries.with(server, 'signature'),
      bytes: bytes.with(server),
      shown: [0, 0],
    });
  }

  readonly of: (route: Route) => DnssecCounters = perRoute(({ server }) => {
    let counters = this.#byServer.get(server);
    if (counters === undefined) this.#byServer.set(server, (counters = this.#make(server)));
    return counters;
  });

  show({ entries, bytes, shown }: DnssecCounters, entriesNow: number, bytesNow: number): void {
    if (this.#closed) return;
    entries.add(entriesNow - shown[0]);
    bytes.add(bytesNow - shown[1]);
    shown[0] = entriesNow;
    shown[1] = bytesNow;
  }

  close(): void {
    for (const counters of this.#byServer.values()) this.show(counters, 0, 0);
    this.#closed = true;
  }
}
