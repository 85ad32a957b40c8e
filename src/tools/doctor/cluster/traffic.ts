/** The growth of DNS pods’ counters during the measurement: queries, replies and upstream times. */
import type { SeriesLabels } from '../../../server/metrics/read-exposition.ts';
import type { ClusterFacts } from './facts.ts';
import type { Measured } from './measure.ts';

/** The growth of a counter; a restarted one counts from zero. */
export function grown(
  { before, after }: Pick<Measured, 'before' | 'after'>,
  name: string,
  fits?: (labels: SeriesLabels) => boolean,
): number {
  const [from, to] = [before.sum(name, fits), after.sum(name, fits)];
  return to < from ? to : to - from;
}

/** The same by the value of a label. */
export function grownBy(
  { before, after }: Pick<Measured, 'before' | 'after'>,
  name: string,
  label: string,
): ReadonlyMap<string, number> {
  const from = before.by(name, label);
  return new Map(
    [...after.by(name, label)].map(([key, to]) => {
      const was = from.get(key) ?? 0;
      return [key, to < was ? to : to - was] as const;
    }),
  );
}

/** The sum over DNS pods, without node caches, which count the same queries again. */
export function total(
  facts: ClusterFacts,
  metric: string,
  fits?: (labels: SeriesLabels) => boolean,
): number {
  return servers(facts).reduce((sum, each) => sum + grown(each, metric, fits), 0);
}

/** DNS pods whose metrics were read, without node caches. */
export function servers({ measurement }: ClusterFacts): readonly Measured[] {
  return measurement.measured.filter(({ pod }) => pod.role === 'server');
}

/**
 * Queries per second and their results, for the head of the report; null if nothing was measured.
 */
export function trafficOf(facts: ClusterFacts): {
  readonly perSecond: number;
  readonly queries: number;
  /** Of all queries, from 0 to 1. */
  readonly cached: number;
  readonly servfail: number;
} | null {
  const measured = servers(facts);
  if (measured.length === 0) return null;
  const queries = total(facts, 'coredns_dns_requests_total');
  const seconds = Math.max(...measured.map((each) => each.seconds));
  const of = (count: number): number => (queries === 0 ? 0 : Math.min(1, count / queries));
  return {
    queries,
    perSecond: seconds > 0 ? queries / seconds : 0,
    cached: of(total(facts, 'coredns_cache_hits_total')),
    servfail: of(total(facts, 'coredns_dns_responses_total', isServfail)),
  };
}

/** Matches the series for SERVFAIL replies. */
export function isServfail({ rcode }: SeriesLabels): boolean {
  return rcode === 'SERVFAIL';
}

/** The time that DNS pods wait for each upstream. */
export function upstreamTimes(facts: ClusterFacts): readonly {
  readonly to: string;
  readonly count: number;
  readonly failures: number;
  readonly meanMs: number;
}[] {
  const metric = 'coredns_proxy_request_duration_seconds';
  const sums = new Map<string, { count: number; seconds: number; failures: number }>();
  for (const each of servers(facts)) {
    const seconds = grownBy(each, `${metric}_sum`, 'to');
    for (const [to, count] of grownBy(each, `${metric}_count`, 'to')) {
      const fails = grown(
        each,
        `${metric}_count`,
        (labels) =>
          labels['to'] === to && (labels['rcode'] === 'SERVFAIL' || labels['rcode'] === 'REFUSED'),
      );
      const sum = sums.get(to) ?? { count: 0, seconds: 0, failures: 0 };
      sums.set(to, {
        count: sum.count + count,
        seconds: sum.seconds + (seconds.get(to) ?? 0),
        failures: sum.failures + fails,
      });
    }
  }
  return [...sums].map(([to, { count, seconds, failures }]) => ({
    to,
    count,
    failures,
    meanMs: count === 0 ? 0 : (1000 * seconds) / count,
  }));
}
