/** Replicas by what the present ones do: queries, processors, cache, from two scrapes of each. */
import { Problem } from '../../base/problem.ts';
import type { Scrape } from '../../metrics/read-exposition.ts';

/** What one scrape of one replica says. Counters since its start. */
export interface ReplicaSample {
  /** Milliseconds of a clock that never goes back. */
  readonly at: number;
  readonly queries: number;
  readonly cpuSeconds: number;
  readonly cacheHits: number;
}

/** What was measured, and what it comes to. */
export interface MeasuredSize {
  readonly replicas: number;
  readonly because: string;
  /** Of all replicas together. */
  readonly queriesPerSecond: number;
  /** Seconds. */
  readonly cpuPerQuery: number;
  /** The share of a replica's processors that is used now, on average. */
  readonly utilisation: number;
  /** The share of queries that the cache answered. */
  readonly cacheHits: number;
}

/** Above this share of its processors a server queues visibly, and a burst has no room. */
const UTILISATION_MAX = 0.7;

/** What a scrape of ndots or CoreDNS says of it. @param at when it was scraped, milliseconds */
export function sampleOf(scrape: Scrape, at: number): ReplicaSample {
  return {
    at,
    queries: scrape.sum('coredns_dns_requests_total'),
    cpuSeconds: scrape.sum('process_cpu_seconds_total'),
    cacheHits: scrape.sum('coredns_cache_hits_total'),
  };
}

/**
 * So many replicas that, with one of them gone, the others answer `peak` times the present queries with no more than seven tenths of
 * their processors.
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
    // A replica that was started anew meanwhile counts from nothing.
    const since =
      sample.queries < from.queries ? { queries: 0, cpuSeconds: 0, cacheHits: 0 } : from;
    queriesPerSecond += (sample.queries - since.queries) / seconds;
    cpuPerSecond += (sample.cpuSeconds - since.cpuSeconds) / seconds;
    hitsPerSecond += (sample.cacheHits - since.cacheHits) / seconds;
  });
  if (queriesPerSecond === 0)
    throw new Problem({
      code: 'nothing-measured',
      text: 'no replica was asked anything while it was measured',
      remedy:
        'Measure at a busy hour, for longer (--for 60), and give the address of each replica.',
    });
  const cpuPerQuery = cpuPerSecond / queriesPerSecond;
  const busy = Math.max(1, Math.ceil((peak * cpuPerSecond) / (cpu * UTILISATION_MAX)));
  return {
    replicas: busy + 1,
    because: `${busy} answer ${peak} times the queries of now with ${UTILISATION_MAX * 100} % of ${cpu} processors each, and one may be gone`,
    queriesPerSecond,
    cpuPerQuery,
    utilisation: cpuPerSecond / (after.length * cpu),
    cacheHits: hitsPerSecond / queriesPerSecond,
  };
}
