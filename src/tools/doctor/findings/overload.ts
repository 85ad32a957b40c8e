/** Servers that cannot keep up, shown by their losses or by their queues. */
import { servers, total } from '../cluster/traffic.ts';
import { grown } from '../cluster/counter-growth.ts';
import { nameOf } from '../cluster/facts.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import type { History, ServerView } from '../observe/server-view.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  excluded,
  unknown,
  type Finding,
  type FindingKind,
  type Verdict,
  clusterFinding,
  unread,
} from './finding.ts';
import { clock, listed, share, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { lateFromMemory } from '../observe/late-from-memory.ts';
import { isOfTwoPaces, latePods, type PodPace } from '../observe/pods-apart.ts';
import { upstreams } from '../observe/roles.ts';
import { LATE_MS, MIN_QUERIES, RARE_SHARE, SLOW_QUANTILE } from '../thresholds/evidence.ts';
import {
  BUSY,
  BUSY_MEAN_MS,
  OVERLOAD_LOSSES,
  QUEUE,
  WAITING_LOOKUPS,
} from '../thresholds/lateness.ts';

const said: Omit<Finding, 'confidence' | 'seen' | 'exchanges'> = {
  code: 'ND7001',
  title: 'A name server cannot keep up: replies come late, then not at all',
  severity: 'critical',
  why: 'Queries arrive faster than they are answered: the server’s CPU is at its limit (or throttled), or its upstream is slow and everything waits. Clients then retry, which adds to the load.',
  fix: [
    'Add replicas, and remove the CPU limit from the DNS pods (it throttles them in bursts).',
    'Reduce queries: use a node-local cache, and lower ndots for pods that look up external names.',
    'Set max_concurrent in forward to limit the queries that wait for a slow upstream.',
  ],
  prove:
    'kubectl -n kube-system top pods -l k8s-app=kube-dns; container_cpu_cfs_throttled_periods_total; coredns_forward_max_concurrent_rejects_total',
  disproved:
    'the server’s own latency metric (coredns_dns_request_duration_seconds) stays low at the time',
};

/** A server that answers ever later, and then not at all. */
export const overload: FindingKind = {
  code: said.code,
  title: said.title,
  name: 'an overloaded server',
  inCapture(observed, claims) {
    if (observed.total.asked < MIN_QUERIES) return unknown('too few queries to judge by');
    const late = lateWithOwnNames(observed, claims);
    if (late !== null) return late;
    for (const server of observed.servers.list) {
      const { outcomes, history } = server;
      const { lossy, calm } = server.byLoss;
      const quiet = calm.filter(([, { lost, asked }]) => asked > lost && lost === 0);
      const mean = (list: History): number => {
        const asked = list.reduce((sum, [, second]) => sum + second.asked - second.lost, 0);
        return asked === 0
          ? 0
          : list.reduce((sum, [, second]) => sum + second.latencyMs, 0) / asked;
      };
      const before = mean(quiet);
      const within = mean(lossy);
      const slow =
        quiet.length === 0
          ? within > BUSY.aloneMs
          : (within > BUSY.ms && within > BUSY.times * before) ||
            // Most of these are slow, not only a few that wait for an upstream.
            server.isOutOfBreath;
      const losses = claims.openTo(server.address);
      const asked = lossy.reduce((sum, [, second]) => sum + second.asked, 0);
      if (!slow || server.stoodStill || answersOthers(observed, server)) continue;
      if (losses.length < OVERLOAD_LOSSES || losses.length < RARE_SHARE * asked) continue;
      claims.take(losses);
      claims.late.add(server.address);
      const rejects =
        (observed.counters.get('concurrentRejects') ?? 0) +
        (observed.counters.get('shedDropped') ?? 0);
      const killed = observed.counters.get('oomKilled') ?? 0;
      return {
        ...said,
        confidence: rejects + killed > 0 ? 0.95 : 0.85,
        seen: [
          `${server.address}: replies took ${within.toFixed(0)} ms on average in the seconds when queries were lost, ${before.toFixed(1)} ms in the others.`,
          `${share(outcomes.lost, outcomes.asked)} got no reply; most in one second: ${Math.max(...history.map(([, second]) => second.asked))} queries.`,
          ...(killed > 0
            ? [`The kernel or Kubernetes ended a process for its memory ${killed} times.`]
            : []),
          ...(rejects > 0
            ? [`CoreDNS refused or dropped ${rejects} queries because too many waited.`]
            : []),
        ],
        exchanges: losses,
      };
    }
    return waitingLine(observed, claims) ?? excluded(paceText(observed));
  },
  inCluster(facts) {
    const measured = servers(facts);
    if (measured.length === 0) return unread;
    const rejected = total(facts, 'coredns_forward_max_concurrent_rejects_total');
    const shed = total(facts, 'coredns_shed_dropped_total');
    if (rejected + shed === 0) return excluded('no DNS pod rejects queries at a limit');
    return clusterFinding(this, {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        ...(rejected > 0
          ? [
              `${rejected} queries were refused because more than max_concurrent waited for the upstream.`,
            ]
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
      why: 'More queries wait than the limit allows: the upstream is slow, or there are more queries than these pods can answer. Clients retry rejected queries, which adds to the load.',
      fix: [
        'Check whether the upstream is slow (coredns_proxy_request_duration_seconds). If not, add replicas: ndots size --metrics …',
        'Run a cache on each node, and use fewer search domains.',
      ],
      prove: 'coredns_forward_max_concurrent_rejects_total, twice',
      disproved: 'the counter does not rise while lookups are slow',
    });
  },
};

/** Names that every DNS pod has in memory take long. */
function lateWithOwnNames(observed: Observations, claims: Claims): Finding | null {
  const stretches = lateFromMemory(observed).filter(
    ({ server }) => !claims.late.has(server.address),
  );
  const [worst] = stretches.toSorted((one, other) => other.replies - one.replies);
  if (worst === undefined) return null;
  const addresses = new Set(stretches.map(({ server }) => server.address));
  const isTheirs = ({ server, hops, sentMs }: SeenExchange): boolean =>
    (addresses.has(server.address) || hops.some((hop) => addresses.has(hop.server.address))) &&
    stretches.some(({ fromS, toS }) => sentMs >= (fromS - 1) * 1000 && sentMs < (toS + 2) * 1000);
  const losses = claims.open.filter(isTheirs);
  // A server that is busy loses queries of anybody.
  const losers = new Set(losses.map(({ client }) => client.address));
  const isUpstreamSlow = [...upstreams(observed)].some(
    (address) => (observed.servers.get(address)?.quantile(QUEUE.quantile) ?? 0) >= LATE_MS,
  );
  const feltMs = isUpstreamSlow ? 2 * BUSY_MEAN_MS : BUSY_MEAN_MS;
  if (losers.size < Math.min(2, worst.server.clients.size) && worst.meanMs < feltMs) return null;
  const slow = observed.affected.flatMap(({ exchanges }) =>
    exchanges.filter((each) => isTheirs(each) && (latencyOf(each) ?? 0) >= worst.meanMs),
  );
  claims.take(losses);
  for (const address of addresses) claims.late.add(address);
  for (const { server } of losses) claims.late.add(server.address);
  const { server, fromS, toS, replies, meanMs, otherwiseMs } = worst;
  const { late, quick } = latePods(observed, server, fromS, toS);
  // (A server that asks others itself is one process.)
  const isOne = observed.clients.get(server.address) !== undefined;
  const isOfOne = late.length > 0 || (!isOne && isOfTwoPaces(server, fromS, toS));
  return {
    ...said,
    ...(isOfOne ? ofOnePod(late) : {}),
    confidence: 0.88,
    seen: [
      ...(late.length > 0
        ? [
            `Of the DNS pods behind ${server.address}, ${paceTexts(late)} on average in that time, and ${paceTexts(quick)}.`,
          ]
        : isOfOne
          ? [
              `In the same seconds ${server.address} answers some queries at once and others very late, as if one of several DNS pods behind it were busy.`,
            ]
          : []),
      `${server.address} took ${took(meanMs)} on average for cluster names (${replies} replies from ${clock(fromS * 1000)} to ${clock((toS + 1) * 1000)}${otherwiseMs === null ? '' : `; ${took(otherwiseMs)} before and afterwards`}). DNS pods have these in memory and forward none of them: the server itself is short of CPU time (or, behind a cache of the node, the DNS pods are).`,
      `${share(losses.length, observed.total.asked)} queries got no reply in that time; ${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
    ],
    exchanges: [...losses, ...slow],
  };
}

/** One of several pods is late: it, or its node, has no time. @param late the pods, if they are seen */
function ofOnePod(late: readonly PodPace[]): Pick<Finding, 'title' | 'why' | 'fix'> {
  const pods = late.length === 0 ? 'the late pod' : listed(late.map(({ address }) => address));
  return {
    title:
      'One of the DNS pods is starved of CPU time: it answers late, while the others answer at once',
    why: 'The load is not too high for the others, which answer at once. This pod stalls: its CPU limit throttles it, or its node is busy, swapping or frozen at times.',
    fix: [
      `For ${pods}, remove the CPU limit (it throttles in bursts) and set a CPU request. Then check its node’s load (kubectl top node; pressure stall information).`,
      'Delete the pod so that it starts on another node, and spread the replicas over nodes.',
    ],
  };
}

function paceTexts(pods: readonly PodPace[]): string {
  return listed(pods.map(({ address, meanMs }) => `${address} took ${took(meanMs)}`));
}

/** True if late replies wait for a server behind this one. */
function answersOthers({ lines, backends }: Observations, server: ServerView): boolean {
  const isOutrun = ({ address }: ServerView): boolean => lines.get(address)?.isOutrun ?? false;
  if (!isOutrun(server)) return false;
  // Of several behind one address each has a line of its own.
  const behind = backends.list.filter(({ clients }) =>
    [...clients].some((one) => server.clients.has(one)),
  );
  return behind.length === 0 || behind.some(isOutrun);
}

/** All wait for each other, and hardly anything is lost yet. */
function waitingLine(observed: Observations, claims: Claims): Verdict | null {
  if (observed.slowLookups < WAITING_LOOKUPS * observed.lookups) return null;
  const behind = [...observed.servers.list, ...observed.backends.list].flatMap((server) => {
    const line = observed.lines.get(server.address)?.line ?? null;
    return line === null ||
      line.correlation < QUEUE.correlation ||
      line.longest < QUEUE.longest ||
      observed.lines.get(server.address)!.isOvertaken ||
      server.quantile(SLOW_QUANTILE) < LATE_MS
      ? []
      : [{ ...line, server }];
  });
  if (behind.length === 0) return null;
  const addresses = new Set(behind.map(({ server }) => server.address));
  // The Service in front of them is late with them.
  const isTheirs = ({ server, hops }: SeenExchange): boolean =>
    addresses.has(server.address) || hops.some((hop) => addresses.has(hop.server.address));
  const slow = observed.affected.flatMap(({ exchanges }) =>
    exchanges.filter((each) => isTheirs(each) && (latencyOf(each) ?? 0) >= LATE_MS / 2),
  );
  const losses = claims.open.filter(isTheirs);
  claims.take(losses);
  for (const { server } of [...slow, ...losses]) claims.late.add(server.address);
  for (const address of addresses) claims.late.add(address);
  return {
    ...said,
    confidence: 0.85,
    seen: [
      ...behind
        .slice(0, 3)
        .map(
          ({ server, stepMs, longest, correlation }) =>
            `${server.address}: the more queries wait, the longer each takes: about ${took(stepMs)} for each of up to ${longest} queries ahead of it (correlation ${correlation.toFixed(2)}). One in ten took more than ${took(server.quantile(SLOW_QUANTILE) / 2)}.`,
        ),
      `${share(observed.slowLookups, observed.lookups)} lookups took a second or more; ${share(observed.total.lost, observed.total.asked)} queries got no reply.`,
    ],
    exchanges: [...slow, ...losses],
  };
}

/** The mean time of the server that loses most: while it does, and otherwise. */
function paceText({ servers }: Observations): string {
  const losing = servers.list
    .filter(({ outcomes }) => outcomes.lost > 0)
    .toSorted((one, other) => other.outcomes.lost - one.outcomes.lost);
  if (losing.length === 0) return 'no query is lost, and none waits for earlier ones';
  // A server that never answers is not late.
  const worst = losing.find(({ outcomes }) => answered(outcomes) > 0);
  if (worst === undefined)
    return 'the servers that lose queries answer none at all, so this is not overload';
  const { within, otherwise } = worst.pace;
  // If all queries of a second are lost, or no second is without a loss, there are not two rates to compare.
  if (within === 0 || otherwise === 0)
    return `${worst.address} loses queries, but those that it answers mostly take ${took(within + otherwise)}`;
  return `the server that loses most mostly answers within ${took(within)} in those seconds, and within ${took(otherwise)} in others`;
}
