/** An upstream that does not answer. */
import type { ClusterFacts } from '../cluster/facts.ts';
import { grownBy } from '../cluster/traffic.ts';
import { shortcomingOf } from '../../lint/live/upstreams.ts';
import { serverText } from '../../probe/probe-queries.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown, noUpstreams } from './finding.ts';

export const silentUpstream: FindingKind = {
  code: 'ND4008',
  title: 'An upstream server does not answer',
  name: 'upstream servers that are silent',
  inCluster(facts) {
    const failed = failedHealthChecks(facts);
    const asked = facts.upstreams ?? [];
    const silent = asked.flatMap(({ zone, replies, place, servers }) =>
      replies
        .filter((each) => shortcomingOf(each) === 'silent')
        .map(({ server, udp }) => ({
          to: serverText(server),
          zone,
          place,
          of: servers.length,
          why: udp.failure ?? '',
        })),
    );
    const measured = facts.measurement.measured.length > 0;
    // The DNS pods may reach an upstream that this machine cannot: their counters decide.
    const both = silent.filter(({ to }) => failed.has(to) || !measured);
    if (failed.size === 0 && both.length === 0) {
      if (!measured && asked.length === 0) return noUpstreams;
      return silent.length > 0
        ? unknown(
            `${listed(silent.map(({ to }) => to))} did not answer queries from here, but the DNS pods count no failed health checks`,
          )
        : excluded('upstreams answer, and no health checks fail');
    }
    const all = asked.some(
      ({ replies }) =>
        replies.length > 0 &&
        replies.every((each) => both.some(({ to }) => to === serverText(each.server))),
    );
    const names = [...new Set([...failed.keys(), ...both.map(({ to }) => to)])];
    return {
      severity: all ? 'critical' : 'warning',
      confidence: failed.size > 0 && both.length > 0 ? 0.95 : failed.size > 0 ? 0.85 : 0.6,
      seen: [
        ...[...failed].map(
          ([to, count]) => `${count} health checks of ${to} failed during the measurement.`,
        ),
        ...both.map(
          ({ to, zone, of, why }) =>
            `A query from here to ${to} (one of ${of} upstreams for ${zone}) failed: ${why}.`,
        ),
      ],
      affected: names.map((name) => `upstream ${name}`),
      why: 'Queries that forward sends there time out before another upstream is tried. If it is the only one, names in its zone get SERVFAIL.',
      fix: [
        'Check whether the upstream is up, and whether UDP port 53 is open to it from the DNS pods’ nodes.',
        'Add a second upstream, so that forward can skip the one whose health checks fail.',
      ],
      prove: `run ndots query . NS @${names[0]!} on a node with a DNS pod`,
      disproved: 'the query is answered there immediately every time',
      places: [...new Set(both.map(({ place }) => place))],
    };
  },
};

/** Failed health checks by upstream during the measurement, for all DNS pods together. */
function failedHealthChecks({ measurement }: ClusterFacts): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const each of measurement.measured)
    for (const metric of [
      'coredns_proxy_healthcheck_failures_total',
      'coredns_forward_healthcheck_failures_total',
    ])
      for (const [to, count] of grownBy(each, metric, 'to'))
        if (count > 0) sums.set(to, (sums.get(to) ?? 0) + count);
  return sums;
}
