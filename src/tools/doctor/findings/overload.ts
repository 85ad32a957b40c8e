/** Servers that cannot keep up, shown by their losses or by their queues. */
import { commonZone, isBelow } from '../../../server/wire/within-zone.ts';
import { grown, servers, total } from '../cluster/traffic.ts';
import { nameOf } from '../cluster/facts.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import { flooderOf } from '../observe/flooder.ts';
import type { ServerHistory, ServerView } from '../observe/server-view.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  excluded,
  unknown,
  type Finding,
  type FoundCause,
  type OptionalText,
  type FindingKind,
  type Verdict,
  unread,
} from './finding.ts';
import { fromTo, listed, share, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { lateFromMemory, stallingServers } from '../observe/late-from-memory.ts';
import { isOfTwoPaces, latePods, type PodPace } from '../observe/pods-apart.ts';
import { upstreams } from '../observe/roles.ts';
import {
  LATE_MS,
  MAX_CHANCE,
  MIN_QUERIES,
  RARE_SHARE,
  SLOW_QUANTILE,
} from '../thresholds/evidence.ts';
import {
  BUSY,
  BUSY_MEAN_MS,
  OVERLOAD_LOSSES,
  QUEUE,
  WAITING_LOOKUPS,
} from '../thresholds/lateness.ts';

const said: Omit<FoundCause, 'confidence' | 'seen' | 'exchanges'> = {
  severity: 'critical',
  why: 'Queries arrive faster than they are answered. The server’s CPU is at its limit (or throttled), or its upstream is slow and all queries wait. Clients then retry, which adds to the load.',
  fix: [
    'Add replicas, and remove the CPU limit from the DNS pods (it throttles them in bursts).',
    'Reduce the number of queries with a node-local cache, and with a lower ndots in pods that look up external names.',
    'Set max_concurrent in forward to limit the queries that wait for a slow upstream.',
  ],
  prove:
    'run kubectl -n kube-system top pods -l k8s-app=kube-dns, and check container_cpu_cfs_throttled_periods_total and coredns_forward_max_concurrent_rejects_total',
  disproved:
    'the server’s own latency metric (coredns_dns_request_duration_seconds) stays low at the time',
};

export const overload: FindingKind = {
  code: 'ND7001',
  title: 'A name server is overloaded, so replies come late and then not at all',
  name: 'an overloaded server',
  inCapture(observed, claims) {
    if (observed.total.asked < MIN_QUERIES) return unknown('too few queries');
    const late = lateWithOwnNames(observed, claims);
    if (late !== null) return late;
    for (const server of observed.servers.list) {
      const { outcomes, history } = server;
      const { lossy, calm } = server.byLoss;
      const quiet = calm.filter(([, { lost, asked }]) => asked > lost && lost === 0);
      const mean = (list: ServerHistory): number => {
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
            // Most of these are slow, rather than only a few that wait for an upstream.
            server.isOutOfBreath;
      const losses = claims.openTo(server.address);
      const asked = lossy.reduce((sum, [, second]) => sum + second.asked, 0);
      if (!slow || server.stoodStill || answersOthers(observed, server)) continue;
      if (losses.length < OVERLOAD_LOSSES || losses.length < RARE_SHARE * asked) continue;
      if (areOfOneZone(losses, server, observed)) continue;
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
          flooderText(observed, losses),
          `Replies from ${server.address} took ${within.toFixed(0)} ms on average in the seconds when queries were lost, compared with ${before.toFixed(1)} ms in other seconds.`,
          `${share(outcomes.lost, outcomes.asked)} queries got no reply. The peak load was ${Math.max(...history.map(([, second]) => second.asked))} queries a second.`,
          killed > 0 &&
            `The kernel or Kubernetes killed a process for its memory use ${killed} times.`,
          rejects > 0 &&
            `CoreDNS refused or dropped ${rejects} queries because too many were waiting.`,
        ],
        exchanges: losses,
      };
    }
    return (
      waitingLine(observed, claims) ?? shortStalls(observed, claims) ?? excluded(paceText(observed))
    );
  },
  inCluster(facts) {
    const measured = servers(facts);
    if (measured.length === 0) return unread;
    const rejected = total(facts, 'coredns_forward_max_concurrent_rejects_total');
    const shed = total(facts, 'coredns_shed_dropped_total');
    if (rejected + shed === 0) return excluded('no DNS pod rejects queries because of a limit');
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        rejected > 0 &&
          `${rejected} queries were refused because more than max_concurrent waited for the upstream.`,
        shed > 0 && `${shed} queries were dropped by shed.`,
      ],
      affected: measured
        .filter(
          (each) =>
            grown(each, 'coredns_forward_max_concurrent_rejects_total') +
              grown(each, 'coredns_shed_dropped_total') >
            0,
        )
        .map(({ pod }) => nameOf(pod)),
      why: 'More queries are waiting than the limit allows, because the upstream is slow or these pods get more queries than they can answer. Clients retry rejected queries, which adds to the load.',
      fix: [
        'Check whether the upstream is slow (coredns_proxy_request_duration_seconds). If it is not, add replicas (ndots size --metrics … computes the number).',
        'Run a cache on each node, and use fewer search domains.',
      ],
      prove: 'read coredns_forward_max_concurrent_rejects_total twice and compare',
      disproved: 'the counter does not rise while lookups are slow',
    };
  },
};

/** True if the losses are in one zone, and not by chance. A busy server loses queries for any name. */
function areOfOneZone(
  losses: readonly SeenExchange[],
  { address, outcomes }: ServerView,
  { names }: Observations,
): boolean {
  const zone = losses.map(({ name }) => name).reduce(commonZone);
  if (zone.split('.').length <= 2) return false;
  const within = names.list.reduce(
    (sum, { name, servers: of }) => sum + (isBelow(name, zone) ? (of.get(address)?.asked ?? 0) : 0),
    0,
  );
  return (within / outcomes.asked) ** losses.length <= MAX_CHANCE;
}

/** Names that every DNS pod answers from memory take long. */
function lateWithOwnNames(observed: Observations, claims: Claims): FoundCause | null {
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
  // A busy server loses queries from all its clients.
  const losers = new Set(losses.map(({ client }) => client.address));
  const isUpstreamSlow = [...upstreams(observed)].some(
    (address) => (observed.servers.get(address)?.quantile(QUEUE.quantile) ?? 0) >= LATE_MS,
  );
  const feltMs = isUpstreamSlow ? 2 * BUSY_MEAN_MS : BUSY_MEAN_MS;
  if (losers.size < Math.min(2, worst.server.clients.size) && worst.meanMs < feltMs) return null;
  const slow = observed.affectedExchanges(
    (each) => isTheirs(each) && (latencyOf(each) ?? 0) >= worst.meanMs,
  );
  claims.take(losses);
  for (const address of addresses) claims.late.add(address);
  for (const { server } of losses) claims.late.add(server.address);
  const { server, fromS, toS, replies, meanMs, otherwiseMs } = worst;
  const { late, quick } = latePods(observed, server, fromS, toS);
  // (A server that queries others itself is one process.)
  const isOne = observed.clients.get(server.address) !== undefined;
  const hasPaces = isOfTwoPaces(server, fromS, toS);
  // If other pods answered at that time, their replies would overtake the waiting ones.
  const isOutrun = observed.lines.get(server.address)?.isOutrun ?? false;
  const isOfOne = late.length > 0 || (!isOne && hasPaces && isOutrun);
  const pods = stretches.flatMap((each) =>
    observed.backends.get(each.server.address) === undefined ? [] : each.server.address,
  );
  const isInBursts = !isOfOne && hasPaces;
  return {
    ...said,
    ...(isOfOne ? ofOnePod(late) : isInBursts ? inBursts(isOne ? [server.address] : pods) : {}),
    confidence: 0.88,
    seen: [
      late.length > 0 &&
        `Of the DNS pods behind ${server.address}, ${paceTexts(late)} on average during that time, while ${paceTexts(quick)}.`,
      isOfOne &&
        late.length === 0 &&
        `In the same seconds, ${server.address} answered some queries at once and others very late, as if one of several DNS pods behind it were busy.`,
      isInBursts &&
        `${server.address} repeatedly answered nothing for up to a second or more, then answered all waiting queries together. Between these stalls, it answered at once.`,
      isInBursts &&
        pods.length > 1 &&
        `The DNS pods behind it (${listed(pods)}) are late in the same seconds.`,
      `${server.address} took ${took(meanMs)} on average for cluster names (${replies} replies ${fromTo(fromS * 1000, (toS + 1) * 1000)}${otherwiseMs === null ? '' : `, compared with ${took(otherwiseMs)} before and afterwards`}). DNS pods answer these from memory, so the server itself is short of CPU time (or the DNS pods are, if this is a node cache).`,
      flooderText(observed, losses),
      `${share(losses.length, observed.total.asked)} queries got no reply during that time, and ${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
    ],
    exchanges: [...losses, ...slow],
  };
}

/** A part of the cluster names takes many times as long as the rest, although nothing is lost. */
function shortStalls(observed: Observations, claims: Claims): FoundCause | null {
  const all = stallingServers(observed).filter(({ server }) => !claims.late.has(server.address));
  const [first] = all;
  if (first === undefined) return null;
  const { server, stalls } = first;
  const addresses = new Set(all.map((each) => each.server.address));
  const pods = [...addresses].filter((address) => observed.backends.get(address) !== undefined);
  const { late, quick } = latePods(
    observed,
    server,
    Math.floor(stalls.fromMs / 1000),
    Math.floor(stalls.toMs / 1000),
  );
  // A server that queries others itself is one process.
  const isOne = observed.clients.get(server.address) !== undefined || pods.length > 0;
  const isOfOne = late.length > 0 || (!isOne && stalls.isOutrun);
  const which = pods.length > 0 ? pods : isOne ? [server.address] : [];
  for (const address of addresses) claims.late.add(address);
  return {
    ...said,
    ...(isOfOne ? ofOnePod(late) : which.length > 0 ? inBursts(which) : ofSomePod),
    severity: 'warning',
    confidence: 0.8,
    seen: [
      `${share(stalls.late, stalls.all)} replies from ${server.address} for cluster names took ${took(stalls.lateMs)} or longer, half of these ${took(stalls.usualMs)}, and up to ${took(stalls.longestMs)}. The others arrived within ${took(server.quantile(0.5))}. DNS pods answer these names from memory.`,
      'The late replies come in bursts: queries that were sent at different times are answered together, again and again.',
      late.length > 0
        ? `Of the DNS pods behind ${server.address}, ${paceTexts(late)} on average, while ${paceTexts(quick)}.`
        : isOfOne &&
          `While these queries waited, ${server.address} answered others at once, so one of several DNS pods behind it stalls.`,
    ],
    hits: stalls.late,
    exchanges: observed.affectedExchanges(
      (each) =>
        (addresses.has(each.server.address) ||
          each.hops.some((hop) => addresses.has(hop.server.address))) &&
        (latencyOf(each) ?? 0) >= stalls.lateMs,
    ),
  };
}

/** Names the client whose queries overload the server, if it is one. */
function flooderText(observed: Observations, losses: readonly SeenExchange[]): OptionalText {
  const flooder = losses.length === 0 ? null : flooderOf(observed, losses);
  return (
    flooder !== null &&
    `${flooder.address} sent ${share(flooder.asked, flooder.all)} queries in the time when queries were lost (${flooder.perSecond.toFixed(0)} a second), nearly all for names that do not exist.`
  );
}

/** One of several pods is late because it or its node is short of CPU. @param late the pods, if the capture shows them */
function ofOnePod(late: readonly PodPace[]): Pick<Finding, 'title' | 'why' | 'fix'> {
  const pods = late.length === 0 ? 'the late pod' : listed(late.map(({ address }) => address));
  return {
    title: 'One DNS pod is starved of CPU time and answers late, while the others answer at once',
    why: 'The other pods answer at once, so the load is not too high. This pod stalls because its CPU limit throttles it, or because its node is busy, swapping or frozen at times.',
    fix: [
      `For ${pods}, remove the CPU limit (it throttles in bursts) and set a CPU request. Then check the node’s load (kubectl top node, pressure stall information).`,
      'Delete the pod so that it starts on another node, and spread the replicas over nodes.',
    ],
  };
}

/** Replies come in bursts, because the process gets no CPU time in between. @param pods the stalling ones, if the capture shows them */
function inBursts(pods: readonly string[]): Pick<Finding, 'title' | 'why' | 'fix'> {
  const which = pods.length === 0 ? 'the DNS pods' : listed(pods);
  return {
    title: 'The DNS pods stall for lack of CPU time, then answer all waiting queries at once',
    why: `A server that is merely busy answers steadily, only later. Here, ${which} stopped and then ran again, for cached and cluster names as well, so the upstream is not the cause. The CPU limit throttles ${pods.length === 1 ? 'the pod' : 'all of these pods'} (the quota is used up early in each period), or the node freezes because of overcommitted CPUs, swapping or a paused virtual machine.`,
    fix: [
      `Remove the CPU limit from the DNS pods (${which}), which throttles them in bursts, and set a CPU request.`,
      'Check whether container_cpu_cfs_throttled_periods_total rises for these pods, which shows throttling. If it does not, check the nodes (kubectl top node, pressure stall information, steal time).',
      'Spread the replicas over several nodes, so that one busy node does not stop all of them.',
    ],
  };
}

/** The same, where the capture does not show the pods. */
const ofSomePod: Pick<Finding, 'title' | 'why' | 'fix'> = {
  title: 'A DNS pod stalls for lack of CPU time, then answers all waiting queries at once',
  why: 'A server that is merely busy answers steadily, only later. Here, one or several of the DNS pods stop and then run again, for cluster names as well, so the upstream is not the cause. The CPU limit throttles them (the quota is used up early in each period), or their node freezes because of overcommitted CPUs, swapping or a paused virtual machine.',
  fix: [
    'Find the DNS pods whose container_cpu_cfs_throttled_periods_total rises. Remove their CPU limit, which throttles them in bursts, and set a CPU request.',
    'If it rises for none of them, check the nodes (kubectl top node, pressure stall information, steal time) and the path to them (ping shows the same stalls).',
    'To see which pod stalls, run ndots doctor -i any on a node with DNS pods.',
  ],
};

function paceTexts(pods: readonly PodPace[]): string {
  return listed(pods.map(({ address, meanMs }) => `${address} took ${took(meanMs)}`));
}

/** True if late replies wait for an upstream of this server. */
function answersOthers({ lines, backends }: Observations, server: ServerView): boolean {
  const isOutrun = ({ address }: ServerView): boolean => lines.get(address)?.isOutrun ?? false;
  if (!isOutrun(server)) return false;
  // Several servers behind one address have separate queues.
  const behind = backends.list.filter(({ clients }) =>
    [...clients].some((one) => server.clients.has(one)),
  );
  return behind.length === 0 || behind.some(isOutrun);
}

/** Queries wait for each other, but hardly any is lost yet. */
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
  // The Service in front of them is also late.
  const isTheirs = ({ server, hops }: SeenExchange): boolean =>
    addresses.has(server.address) || hops.some((hop) => addresses.has(hop.server.address));
  const slow = observed.affectedExchanges(
    (each) => isTheirs(each) && (latencyOf(each) ?? 0) >= LATE_MS / 2,
  );
  const losses = claims.open.filter(isTheirs);
  claims.take(losses);
  for (const { server } of [...slow, ...losses]) claims.late.add(server.address);
  for (const address of addresses) claims.late.add(address);
  return {
    ...said,
    confidence: 0.85,
    seen: [
      flooderText(observed, losses),
      ...behind
        .slice(0, 3)
        .map(
          ({ server, stepMs, longest, correlation }) =>
            `At ${server.address}, each query waits about ${took(stepMs)} for every query ahead of it, of which there are up to ${longest} (correlation ${correlation.toFixed(2)}). One in ten took more than ${took(server.quantile(SLOW_QUANTILE) / 2)}.`,
        ),
      `${share(observed.slowLookups, observed.lookups)} lookups took a second or more, and ${share(observed.total.lost, observed.total.asked)} queries got no reply.`,
    ],
    exchanges: [...slow, ...losses],
  };
}

/** Compares the mean reply times of the server that loses most, with and without losses. */
function paceText({ servers }: Observations): string {
  const losing = servers.list
    .filter(({ outcomes }) => outcomes.lost > 0)
    .toSorted((one, other) => other.outcomes.lost - one.outcomes.lost);
  if (losing.length === 0) return 'no query is lost or waits for earlier ones';
  // A server that never answers is not late.
  const worst = losing.find(({ outcomes }) => answered(outcomes) > 0);
  if (worst === undefined)
    return 'the servers that lose queries do not answer at all, so this is not overload';
  const { within, otherwise } = worst.pace;
  // If all queries in a second are lost, or no second is without losses, there are not two times to compare.
  if (within === 0 || otherwise === 0)
    return `${worst.address} loses queries, but those that it answers usually take ${took(within + otherwise)}`;
  return `the server that loses most queries usually answers within ${took(within)} in seconds with losses, and within ${took(otherwise)} in others`;
}
