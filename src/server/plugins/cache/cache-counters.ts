/** The cache's metrics. */
import type { Counter, Gauge, Registry } from '../../metrics/registry.ts';
import type { Route } from '../../transport/query.ts';
import type { Half } from './entries.ts';
import type { Store } from './store.ts';
import { perRoute } from '../../engine/contract/per-route.ts';

export interface CacheCounters {
  readonly requests: Counter;
  readonly misses: Counter;
  readonly hits: readonly [Counter, Counter];
  readonly prefetches: Counter;
  /** Refreshes that were delayed because too many others were in progress. */
  readonly refreshRejects: Counter;
  readonly drops: Counter;
  readonly stale: Counter;
  readonly coalesced: Counter;
  readonly shed: Counter;
  readonly evictions: readonly [Counter, Counter];
  readonly entries: readonly [Gauge, Gauge];
  readonly bytes: Gauge;
  /** Values shown in gauges shared with caches in other configurations that have the same labels. */
  readonly shown: [number, number, number];
}

const halves: readonly Half[] = [0, 1];

export class CacheMetrics {
  readonly #make: (server: string) => CacheCounters;
  readonly #byServer = new Map<string, CacheCounters>();
  readonly #counted: [number, number] = [0, 0];
  #closed = false;

  constructor(metrics: Registry, zones: string, view: string) {
    const plain = ['server', 'zones', 'view'] as const;
    const typed = ['server', 'type', 'zones', 'view'] as const;
    const count = (name: string, help: string) =>
      metrics.counter(`coredns_cache_${name}_total`, help, plain);
    const entries = metrics.gauge(
      'coredns_cache_entries',
      'The number of elements in the cache.',
      typed,
    );
    const hits = metrics.counter('coredns_cache_hits_total', 'The count of cache hits.', typed);
    const evictions = metrics.counter(
      'coredns_cache_evictions_total',
      'The count of cache evictions.',
      typed,
    );
    const requests = count('requests', 'The count of cache requests.');
    const misses = count(
      'misses',
      'The count of cache misses. Deprecated, derive misses from cache hits/requests counters.',
    );
    const prefetches = count(
      'prefetch',
      'The number of times the cache has prefetched a cached item.',
    );
    const drops = count(
      'drops',
      'The number responses that are not cached, because the reply is malformed.',
    );
    const stale = count('served_stale', 'The number of requests served from stale cache entries.');
    const coalesced = metrics.counter(
      'ndots_cache_coalesced_total',
      'Queries that waited for the reply to an identical in-flight query.',
      plain,
    );
    const shed = metrics.counter(
      'ndots_cache_coalesce_rejects_total',
      'Queries answered with SERVFAIL because too many were waiting for identical in-flight queries.',
      plain,
    );
    const refreshRejects = metrics.counter(
      'ndots_cache_refresh_rejects_total',
      'Background refreshes delayed because 1000 others were in progress.',
      plain,
    );
    const bytes = metrics.gauge(
      'ndots_cache_bytes',
      'Bytes of memory used by stored messages.',
      plain,
    );
    type Family<T> = { with(...labels: readonly string[]): T };
    const both = <T>(family: Family<T>, server: string): readonly [T, T] => [
      family.with(server, 'success', zones, view),
      family.with(server, 'denial', zones, view),
    ];
    this.#make = (server) => ({
      requests: requests.with(server, zones, view),
      misses: misses.with(server, zones, view),
      hits: both(hits, server),
      prefetches: prefetches.with(server, zones, view),
      refreshRejects: refreshRejects.with(server, zones, view),
      drops: drops.with(server, zones, view),
      stale: stale.with(server, zones, view),
      coalesced: coalesced.with(server, zones, view),
      shed: shed.with(server, zones, view),
      evictions: both(evictions, server),
      entries: both(entries, server),
      bytes: bytes.with(server, zones, view),
      shown: [0, 0, 0],
    });
  }

  readonly of: (route: Route) => CacheCounters = perRoute(({ server }) => {
    let counters = this.#byServer.get(server);
    if (counters === undefined) this.#byServer.set(server, (counters = this.#make(server)));
    return counters;
  });

  /** Updates the store's gauges after a reply was stored for this listen address. A closed cache has no entries. */
  show(counters: CacheCounters, store: Store): void {
    if (this.#closed) return;
    const { shown } = counters;
    for (const half of halves) {
      if (store.counts[half] !== shown[half]) {
        counters.entries[half].add(store.counts[half] - shown[half]);
        shown[half] = store.counts[half];
      }
      counters.evictions[half].add(store.evictions[half] - this.#counted[half]);
      this.#counted[half] = store.evictions[half];
    }
    counters.bytes.add(store.log.allocated - shown[2]);
    shown[2] = store.log.allocated;
  }

  /** Updates the gauges for all listen addresses after entries were removed. */
  showAll(store: Store): void {
    for (const counters of this.#byServer.values())
      if (counters.shown.some((value) => value !== 0)) this.show(counters, store);
  }

  /** Subtracts the closed cache's values. */
  close(): void {
    this.#closed = true;
    for (const { entries, bytes, shown } of this.#byServer.values()) {
      for (const half of halves) entries[half].add(-shown[half]);
      bytes.add(-shown[2]);
      shown.fill(0);
    }
  }
}
