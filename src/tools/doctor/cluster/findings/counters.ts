/** What the DNS pods count: failures, refusals, waste, slowness. */
import { excluded, unknown } from '../../findings/finding.ts';
import { listed, percent, share, took } from '../../texts.ts';
import { overload } from '../../findings/overload.ts';
import { searchWaste } from '../../findings/search-waste.ts';
import { serverFails } from '../../findings/servfail.ts';
import { slowServer } from '../../findings/slow-server.ts';
import type { SeriesLabels } from '../../../../server/metrics/read-exposition.ts';
import { nameOf, type ClusterFacts } from '../facts.ts';
import { grown, grownBy, type Measured } from '../measure.ts';
import { clusterRule, finding, type ClusterRule } from './rule.ts';

/** With fewer queries a share says nothing. */
const ENOUGH = 50;

const unread = unknown('no DNS pod’s metrics could be read');
const quiet = unknown('too few queries came while it was measured (--for 60s)');

/** The sum over pods that serve; caches of nodes count the same queries once more. */
function total(
  facts: ClusterFacts,
  metric: string,
  fits?: (labels: SeriesLabels) => boolean,
): number {
  return servers(facts).reduce((sum, each) => sum + grown(each, metric, fits), 0);
}

function servers({ measurement }: ClusterFacts): readonly Measured[] {
  return measurement.measured.filter(({ pod }) => pod.role === 'server');
}

/**
 * Queries a second and what became of them, for the head of the report; null: nothing was measured.
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

function isServfail({ rcode }: SeriesLabels): boolean {
  return rcode === 'SERVFAIL';
}

/** A part of the replies is SERVFAIL. */
export const servfailShare: ClusterRule = clusterRule(serverFails, (facts, about) => {
  const measured = servers(facts);
  if (measured.length === 0) return unread;
  const replies = total(facts, 'coredns_dns_responses_total');
  const failed = total(facts, 'coredns_dns_responses_total', isServfail);
  if (replies < ENOUGH) return quiet;
  if (failed < 5 || failed < 0.02 * replies)
    return excluded(`${share(failed, replies)} replies were SERVFAIL`);
  const worst = measured.toSorted(
    (one, other) =>
      grown(other, 'coredns_dns_responses_total', isServfail) -
      grown(one, 'coredns_dns_responses_total', isServfail),
  );
  const slow = upstreamTimes(facts).filter(({ failures }) => failures > 0);
  return finding(about, {
    severity: failed >= 0.1 * replies ? 'critical' : 'warning',
    confidence: 0.8,
    seen: [
      `${share(failed, replies)} replies while it was measured were SERVFAIL, most by ${worst[0]!.pod.name}.`,
      ...slow.map(
        ({ to, failures, count }) =>
          `Upstream ${to}: ${share(failures, count)} replies were SERVFAIL or REFUSED.`,
      ),
    ],
    affected: worst
      .filter((each) => grown(each, 'coredns_dns_responses_total', isServfail) > 0)
      .map(({ pod }) => nameOf(pod)),
    why: 'The server could not find an answer: what it asked itself did not reply, or replied with an error. Programs ask again, go on along the search path, or fail; musl (Alpine) fails after 5 s.',
    fix: [
      'See what the server waits for: its log (errors), and coredns_proxy_request_duration_seconds by "to" and rcode.',
      'More than one upstream, with health checks (forward does that).',
    ],
    prove: 'coredns_dns_responses_total{rcode="SERVFAIL"} by zone and plugin, twice',
    disproved: 'it stands still the next time: then it was one client with one name',
  });
});

/** Queries are refused for want of room. */
export const rejects: ClusterRule = clusterRule(overload, (facts, about) => {
  const measured = servers(facts);
  if (measured.length === 0) return unread;
  const rejected = total(facts, 'coredns_forward_max_concurrent_rejects_total');
  const shed = total(facts, 'coredns_shed_dropped_total');
  if (rejected + shed === 0) return excluded('no DNS pod turns queries away for want of room');
  return finding(about, {
    severity: 'critical',
    confidence: 0.9,
    seen: [
      ...(rejected > 0
        ? [`${rejected} queries were refused as more than max_concurrent waited for upstream.`]
        : []),
      ...(shed > 0 ? [`${shed} queries were dropped by shed.`] : []),
    ],
    affected: measured
      .filter(
        (each) =>
          grown(each, 'coredns_forward_max_concurrent_rejects_total') +
            grown(each, 'coredns_shed_dropped_total') >
          0,
      )
      .map(({ pod }) => nameOf(pod)),
    why: 'More queries wait than may: upstream is slow, or there are more queries than these pods can answer. What is turned away is asked again, which makes it more.',
    fix: [
      'See whether upstream is slow (coredns_proxy_request_duration_seconds); if not, more replicas: ndots size --metrics …',
      'A cache on each node, and fewer search domains.',
    ],
    prove: 'coredns_forward_max_concurrent_rejects_total, twice',
    disproved: 'it stands still while lookups are slow',
  });
});

/** Upstreams that take long. */
export const slowUpstreams: ClusterRule = clusterRule(slowServer, (facts, about) => {
  if (servers(facts).length === 0) return unread;
  const times = upstreamTimes(facts).filter(({ count }) => count >= 20);
  if (times.length === 0) return quiet;
  const slow = times.filter(({ meanMs }) => meanMs > 500);
  if (slow.length === 0)
    return excluded(
      `upstreams take ${took(Math.max(...times.map(({ meanMs }) => meanMs)))} in the mean`,
    );
  return finding(about, {
    severity: 'warning',
    confidence: 0.8,
    seen: slow.map(
      ({ to, count, meanMs }) => `${to}: ${took(meanMs)} in the mean of ${count} queries.`,
    ),
    affected: slow.map(({ to }) => `upstream ${to}`),
    why: 'What is not in the cache waits for it. With several upstreams a client meets the slow one by chance.',
    fix: [
      'Leave it out, if others are faster. ndots: forward { policy latency } does so by itself.',
      'serve_stale in cache answers with what was so before, where that will do.',
    ],
    prove: `ndots bench or ndots query @${slow[0]!.to} from a node with a DNS pod`,
    disproved: 'it answers within milliseconds there',
  });
});

/** What the DNS pods waited for each upstream. */
function upstreamTimes(facts: ClusterFacts): readonly {
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

/** Most replies say that a name is not there. */
export const waste: ClusterRule = clusterRule(searchWaste, (facts, about) => {
  if (servers(facts).length === 0) return unread;
  const replies = total(facts, 'coredns_dns_responses_total');
  const missing = total(facts, 'coredns_dns_responses_total', ({ rcode }) => rcode === 'NXDOMAIN');
  if (replies < ENOUGH) return quiet;
  if (missing < 0.5 * replies)
    return excluded(`${percent(missing, replies)} of replies are NXDOMAIN`);
  const traffic = trafficOf(facts)!;
  return finding(about, {
    severity: 'info',
    confidence: 0.8,
    seen: [
      `${share(missing, replies)} replies were NXDOMAIN, at ${traffic.perSecond.toFixed(0)} queries a second.`,
    ],
    affected: ['all pods that look up names outside the cluster'],
    why: 'With ndots:5 a name with fewer dots is tried with each search domain behind it first, for A and for AAAA: eight to ten queries, of which two can succeed.',
    fix: [
      'Names with a dot at the end, or dnsConfig with ndots 2, where names outside are looked up: ndots webhook does it by annotation.',
      'autopath @name (ndots) answers the first query with what the last would give.',
    ],
    prove: 'ndots capture -i any --for 60s on a node shows which names, and of whom',
    disproved: `names that are asked for do not exist at all: ${listed(['a program that was misconfigured'])}`,
  });
});
