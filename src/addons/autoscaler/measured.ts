/**
 * Computes the number of replicas from the load on the current ones. The load is measured as queries, CPUs and cache,
 * from two scrapes of each replica.
 */
import { Problem } from '../../server/base/problem.ts';
import type { Scrape } from '../../server/metrics/read-exposition.ts';

/** One scrape of one replica. Its counters start at zero when the replica starts. */
export interface ReplicaSample {
  /** Milliseconds of a monotonic clock. */
  readonly at: number;
  readonly queries: number;
  readonly cpuSeconds: number;
  readonly cacheHits: number;
}

/** The measurements, and the resulting number of replicas. */
export interface MeasuredSize {
  readonly replicas: number;
  readonly because: string;
  /** Sum over all replicas. */
  readonly queriesPerSecond: number;
  /** Seconds. */
  readonly cpuPerQuery: number;
  /** Average share of a replica's CPUs that is currently in use. */
  readonly utilisation: number;
  /** Share of queries answered from the cache. */
  readonly cacheHits: number;
}

/** Above this share of its CPUs, a server noticeably queues requests and has no room for bursts. */
const UTILISATION_MAX = 0.7;

/**
 * Extracts a sample from an ndots or CoreDNS scrape.
 * @param at time of the scrape, in milliseconds
 */
export function sampleOf(scrape: Scrape, at: number): ReplicaSample {
  return {
    at,
    queries: scrape.sum('coredns_dns_requests_total'),
    cpuSeconds: scrape.sum('process_cpu_seconds_total'),
    cacheHits: scrape.sum('coredns_cache_hits_total'),
  };
}

/**
 * Computes the number of replicas. With one replica down, the others must handle `peak` times the current queries using
 * at most seven tenths of their CPUs.
 * @throws Problem if there was nothing to measure
 */
export function measuredSize(
  before: readonly ReplicaSample[],
  after: readonly ReplicaSample[],
  { cpu, peak }: { readonly cpu: number; readonly peak: number },
): MeasuredSize {
  let queriesPerSecond = 0;
  let cpuPerSecond = 0;
  let hitsPerSecond = 0;
  after.forEach((sample, nth) => {
    const from = before[nth]!;
    const seconds = (sample.at - from.at) / 1000;
    // A replica that was restarted between the two scrapes counts from zero.
    const since =
      sample.queries < from.queries ? { queries: 0, cpuSeconds: 0, cacheHits: 0 } : from;
    queriesPerSecond += (sample.queries - since.queries) / seconds;
    cpuPerSecond += (sample.cpuSeconds - since.cpuSeconds) / seconds;
    hitsPerSecond += (sample.cacheHits - since.cacheHits) / seconds;
  });
  if (queriesPerSecond === 0)
    throw new Problem({
      code: 'nothing-measured',
      text: 'no replica received a query during the measurement',
      remedy:
        'Measure during a busy hour, for longer (--for 60), and specify each replica’s address.',
    });
  const cpuPerQuery = cpuPerSecond / queriesPerSecond;
  const busy = Math.max(1, Math.ceil((peak * cpuPerSecond) / (cpu * UTILISATION_MAX)));
  return {
    replicas: busy + 1,
    because: `${busy} can answer ${peak} times the current queries, using ${UTILISATION_MAX * 100} % of ${cpu} CPUs each, even if one is down`,
    queriesPerSecond,
    cpuPerQuery,
    utilisation: cpuPerSecond / (after.length * cpu),
    cacheHits: hitsPerSecond / queriesPerSecond,
  };
}
