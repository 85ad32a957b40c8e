/** Upstreams that do not answer, do not answer all, or do not know the same. */
import { viewsDiffer } from '../../findings/differing-servers.ts';
import { excluded, unknown } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { serverText } from '../../../probe/probe-queries.ts';
import { shortcomingOf } from '../../../lint/live/upstreams.ts';
import type { ClusterFacts } from '../facts.ts';
import { grownBy } from '../measure.ts';
import { clusterRule, finding, type ClusterRule } from './rule.ts';

const noUpstreams = unknown('no upstream is known that could be asked from here');

/** Failed health checks by upstream, of all DNS pods together, while it was measured. */
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

/** An upstream that does not answer. */
export const silentUpstream: ClusterRule = clusterRule(
  {
    code: 'ND4008',
    title: 'An upstream server does not answer',
    name: 'upstream servers that are silent',
  },
  (facts, about) => {
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
    // What only this machine cannot reach, the DNS pods may reach: their own count decides.
    const both = silent.filter(({ to }) => failed.has(to) || !measured);
    if (failed.size === 0 && both.length === 0) {
      if (!measured && asked.length === 0) return noUpstreams;
      return silent.length > 0
        ? unknown(
            `${listed(silent.map(({ to }) => to))} does not answer here, and the DNS pods count no failed health check`,
          )
        : excluded('upstreams answer, and no health check fails');
    }
    const all = asked.some(
      ({ replies }) =>
        replies.length > 0 &&
        replies.every((each) => both.some(({ to }) => to === serverText(each.server))),
    );
    const names = [...new Set([...failed.keys(), ...both.map(({ to }) => to)])];
    return finding(about, {
      severity: all ? 'critical' : 'warning',
      confidence: failed.size > 0 && both.length > 0 ? 0.95 : failed.size > 0 ? 0.85 : 0.6,
      seen: [
        ...[...failed].map(
          ([to, count]) => `${count} health checks of ${to} failed while it was measured.`,
        ),
        ...both.map(
          ({ to, zone, of, why }) => `${to}, one of ${of} for ${zone}, asked from here: ${why}.`,
        ),
      ],
      affected: names.map((name) => `upstream ${name}`),
      why: 'Queries that forward sends there wait until they time out before another upstream is asked. If it is the only one, names of its zone are SERVFAIL.',
      fix: [
        'See whether it is there, and whether UDP port 53 from the nodes of the DNS pods to it is open.',
        'A second upstream; forward then leaves out the one whose health checks fail.',
      ],
      prove: `from a node with a DNS pod: ndots query . NS @${names[0]!}`,
      disproved: 'it is answered there at once, again and again',
      places: [...new Set(both.map(({ place }) => place))],
    });
  },
);

/** An upstream that does not do EDNS or TCP. */
export const poorUpstream: ClusterRule = clusterRule(
  {
    code: 'ND4009',
    title: 'A server answers, but not over TCP or not with EDNS',
    name: 'upstream servers without TCP or EDNS',
  },
  ({ upstreams }, about) => {
    if (upstreams === null || upstreams.length === 0) return noUpstreams;
    const found = upstreams.flatMap(({ replies, zone }) =>
      replies.flatMap((each) => {
        const what = shortcomingOf(each);
        return what === 'no-tcp' || what === 'no-edns'
          ? [
              {
                to: serverText(each.server),
                zone,
                what,
                why: (what === 'no-tcp' ? each.tcp : each.udp).failure,
              },
            ]
          : [];
      }),
    );
    if (found.length === 0) return excluded('upstreams that answer do so over TCP and with EDNS');
    return finding(about, {
      severity: 'warning',
      confidence: 0.85,
      seen: found.map(({ to, zone, what, why }) =>
        what === 'no-tcp'
          ? `${to} (for ${zone}) over TCP: ${why}.`
          : `${to} (for ${zone}) answers without EDNS, and with it: ${why}.`,
      ),
      affected: found.map(({ to }) => `upstream ${to}`),
      why: 'Answers that do not fit into one packet come whole only over TCP, or with EDNS up to its size. Names with many addresses or long texts then fail, and others do not.',
      fix: [
        'Open TCP port 53 to it.',
        'A firewall that looks into DNS has to know EDNS (RFC 6891).',
      ],
      prove: `ndots query . NS @${found[0]!.to} +tcp`,
      disproved: 'it is answered from a node with a DNS pod',
    });
  },
);

/** Upstreams that are used in turn and do not know the same names. */
export const views: ClusterRule = clusterRule(viewsDiffer, ({ upstreams, answers }, about) => {
  const several = (upstreams ?? []).filter(({ replies }) => replies.length > 1);
  if (several.length === 0)
    return upstreams === null || upstreams.length === 0
      ? noUpstreams
      : excluded('each zone has one upstream');
  const found = several.flatMap(({ differences }) => differences);
  if (found.length === 0)
    return (answers?.plan.external.length ?? 0) === 0
      ? unknown('no name outside the cluster is known to compare them by: --name NAME')
      : excluded('upstreams of one zone know the same names');
  const [first] = found;
  return finding(about, {
    severity: 'critical',
    confidence: 0.93,
    seen: found.map(
      ({ name, having, lacking }) =>
        `${name}: ${listed(having)} ${having.length === 1 ? 'has' : 'have'} it; ${listed(lacking)} ${lacking.length === 1 ? 'says' : 'say'} NXDOMAIN.`,
    ),
    affected: [...new Set(found.flatMap(({ lacking }) => lacking))].map(
      (each) => `upstream ${each}`,
    ),
    why: 'The first NXDOMAIN that comes is final: the other server, which has the name, is not asked any more. Lookups fail as often as the wrong one is chosen.',
    fix: [
      'A server block for the private zones, forwarded to the private servers only; the rest to servers of one kind.',
    ],
    prove: `ndots query ${first!.name} @${first!.having[0]!}, and @${first!.lacking[0]!}`,
    disproved: 'both servers answer alike when they are asked again',
    places: several.map(({ place }) => place),
  });
});
