/** A server that stops answering all clients, and may start again. */
import type { Claims } from '../observe/claims.ts';
import type { Observations } from '../observe/observations.ts';
import type { ServerView } from '../observe/server-view.ts';
import { takeSilence } from '../observe/consequences.ts';
import {
  excluded,
  unknown,
  type FoundCause,
  type OptionalText,
  type FindingKind,
} from './finding.ts';
import { clock, fromTo, listed, percent, took } from '../texts.ts';
import { areSilentByChance } from '../observe/sockets.ts';
import { howNewOnesSuffer } from '../observe/new-socket-losses.ts';
import {
  hitsAllAlike,
  isAnsweredElse,
  onlyAaaa,
  waitsForOthers,
  wentAstray,
} from '../observe/losses.ts';
import { openedDuring, openedText } from '../observe/other-contacts.ts';
import { askersText, upstreams } from '../observe/roles.ts';
import { repeatedSilence, type RepeatedSilence } from '../observe/repeated-silence.ts';
import { serverStandstill, waitedIn, type StoodStill } from '../observe/server-standstill.ts';
import {
  edgesOf,
  removedFrom,
  silenceOf,
  silentForGood,
  silentToo,
  type SilentForGood,
} from '../observe/server-silence.ts';
import { zonesOfServers } from '../observe/zone-servers.ts';
import { deadNames } from '../observe/dead-names.ts';
import { type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { CLOSED } from '../observe/icmp-errors.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import {
  MIN_EARLIER_LOSSES,
  MIN_OUTAGE_SECONDS,
  OUTAGE_REST,
  UNLIKELY_DEAD,
} from '../thresholds/silence.ts';

export const outage: FindingKind = {
  code: 'ND3007',
  title: 'A name server stopped answering for a while',
  name: 'a restart or a rollout of the DNS pods',
  inCapture(observed, claims) {
    if (observed.seconds < MIN_OUTAGE_SECONDS) return unknown('the capture is too short');
    const views = [...observed.backends.list, ...observed.servers.list];
    // If clients that were answered before still are, the server is not at fault.
    if (howNewOnesSuffer(observed) !== null) return excluded('only new sockets get no replies');
    for (const view of views) {
      const window = silenceOf(view, observed);
      const losses = window === null ? null : lossesOf(view, window, observed, claims);
      if (window === null || losses === null) continue;
      const { fromS, toS } = window;
      const names = new Set(losses.map(({ name }) => name));
      takeSilence(observed, claims, losses);
      const together = silentToo(views, view, window, observed, claims);
      const { fromMs, backMs } = edgesOf(view, window);
      const removedMs = backMs === null ? removedFrom(view, observed) : null;
      const clients = new Set(losses.map(({ client }) => client.address));
      const known = observed.counters.get('lameduck') !== null;
      const [alone] = clients;
      const isAlone = clients.size === 1 && observed.clients.size === 1;
      const accepted = isAlone
        ? openedDuring(observed, [alone!], fromS * 1000, (toS + 1) * 1000).length
        : 0;
      return {
        title:
          accepted < MIN_CASES
            ? this.title
            : 'A pod’s DNS queries got no reply for a while, although its other connections worked',
        severity: 'critical',
        confidence: known ? 0.95 : 0.85,
        seen: [
          `${view.firstReplyMs < fromMs || view.firstMs < fromMs ? `${view.address} answered until ${clock(fromMs)}` : `The capture has no reply of ${view.address} before ${clock(fromMs)}`}. In the following ${toS - fromS + 1} s, ${window.lost} of ${window.asked} queries got no reply (${percent(window.lost, window.asked)}), from ${askersText(observed, clients)}, for ${names.size} ${names.size === 1 ? 'name' : 'names'}.`,
          together.length > 0 && `${listed(together)} fell silent at the same time.`,
          backMs === null
            ? 'It did not answer again before the capture ended.'
            : `Its next reply came at ${clock(backMs)}, ${took(backMs - fromMs)} later.`,
          removedMs !== null &&
            `From ${clock(removedMs)} on, no queries were sent to it and other servers answered, so its endpoint had been removed.`,
          accepted >= MIN_CASES && openedText(accepted, [alone!]),
          unreachableText(view.address, observed),
          known && 'According to the log, a server went into lameduck mode.',
        ],
        ...outageAdvice({
          isBack: backMs !== null,
          isRollout: known || removedMs !== null,
          isUpstream:
            upstreams(observed).has(view.address) || zonesOfServers(observed).has(view.address),
          at: clock(fromMs),
        }),
        ...(accepted >= MIN_CASES && alonePod(alone!, view.address, backMs)),
        exchanges: losses,
      };
    }
    const repeated = repeatedSilence(observed, claims);
    if (repeated !== null) return silentAgain(repeated, observed);
    for (const view of observed.servers.list) {
      const found = silentForGood(view, observed, claims);
      if (found !== null) return silentToTheEnd(found, observed);
    }
    const still = serverStandstill(observed, claims);
    if (still !== null) return stoodStill(still);
    return excluded('no server stopped answering all clients for a while');
  },
};

/** The queries that a server lost while it was silent; null if its silence has another reason. */
function lossesOf(
  view: ServerView,
  window: NonNullable<ReturnType<typeof silenceOf>>,
  observed: Observations,
  claims: Claims,
): readonly SeenExchange[] | null {
  const { fromS, toS } = window;
  if (hitsAllAlike(observed, [window])) return null;
  const isMeanwhile = ({ sentMs }: SeenExchange): boolean =>
    sentMs >= fromS * 1000 && sentMs < (toS + 1) * 1000;
  const theirs = claims.openTo(view.address);
  const losses = theirs.filter(isMeanwhile);
  if (losses.length < MIN_CASES || wentAstray(losses)) return null;
  // If most of the losses are explained, the others belong to them, and so do losses from reused
  // ports.
  const explained = claims.explainedTo(view.address).filter(isMeanwhile);
  if (losses.length < OUTAGE_REST * explained.length) {
    claims.take(losses);
    return null;
  }
  if (losses.filter((loss) => isAnsweredElse(observed, loss)).length < MIN_CASES) return null;
  if (onlyAaaa(losses)) return null;
  const span = { fromMs: fromS * 1000, toMs: (toS + 1) * 1000 };
  if (waitsForOthers(observed, view.address, span.fromMs, span.toMs)) return null;
  if (isOfSomeSockets(losses, theirs)) return null;
  if (areSilentByChance(observed.flows.to(view.address), span)) return null;
  // Other queries are answered at the time, or these names never again. Losses before it are better
  // evidence than the time in which all clients wait.
  const earlier = theirs.filter(({ sentMs }) => sentMs < fromS * 1000);
  const lots = earlier.length < MIN_EARLIER_LOSSES ? [losses] : [losses, [...earlier, ...losses]];
  if (lots.some((lot) => deadNames(observed, lot).some(({ chance }) => chance < UNLIKELY_DEAD)))
    return null;
  return losses;
}

/**
 * True if so few sockets have losses that the server's usual losses explain them. One of several
 * servers behind the address is dead, and waiting clients send no other queries.
 */
function isOfSomeSockets(losses: readonly SeenExchange[], all: readonly SeenExchange[]): boolean {
  const socketOf = ({ client }: SeenExchange): string => `${client.address} ${client.port}`;
  const own = new Set(losses.map(socketOf));
  const others = new Set(all.map(socketOf).filter((socket) => !own.has(socket)));
  return others.size >= MIN_CASES && own.size <= 2 * others.size;
}

/** Texts for a capture of one client, which does not show whether others were answered. */
function alonePod(
  client: string,
  server: string,
  backMs: number | null,
): Pick<FoundCause, 'why' | 'fix' | 'prove' | 'disproved'> {
  return {
    why: `Only packets to port 53 were lost. Either a rule drops them at this pod, such as a NetworkPolicy that denies egress without an exception for DNS, or no DNS pod answered at that time. The capture has only one client, so it does not show which.${backMs === null ? '' : ` The cause was gone at ${clock(backMs)}.`}`,
    fix: [
      `Check whether other pods got replies at that time. If they did, find the policy that selects ${client} (kubectl get networkpolicy -A), and allow UDP and TCP port 53 to the DNS pods.${backMs === null ? '' : ` Check what changed at ${clock(backMs)} UTC.`}`,
      'If they did not, check the DNS pods for restarts, a rollout, memory and CPU limits, or node problems at that time.',
    ],
    prove: `capture on the node (ndots doctor -i any), which shows whether the queries of ${client} are translated and reach a DNS pod, and whether other pods are answered`,
    disproved: `other pods on the same node lost their queries to ${server} at the same time (then the DNS pods are at fault)`,
  };
}

/** ICMP errors for the port from the host with the address, which is up but not a name server. */
function unreachableText(address: string, { unreachable }: Observations): OptionalText {
  const errors = unreachable.get(address);
  if (errors === undefined || errors.count < MIN_CASES || !CLOSED.has(errors.code)) return false;
  return `${errors.count} of these drew ICMP port unreachable, so a machine has that address, but no name server listens there. The server’s process ended, or another machine took over the address (then arping -D finds it, or ip neigh shows a different hardware address than before).`;
}

/** A server that answered (nearly) everything, then stopped. */
function silentToTheEnd(
  { view, losses, sockets, names, endMs }: SilentForGood,
  observed: Observations,
): FoundCause {
  const { address, outcomes, lastReplyMs, sinceReply } = view;
  const clients = new Set(sinceReply.map(({ client }) => client.address));
  return {
    severity: 'critical',
    confidence: 0.8,
    seen: [
      `${address} answered ${outcomes.asked - outcomes.lost} of ${outcomes.asked - losses.length} queries until ${clock(lastReplyMs)}. After that, none of ${sinceReply.length} queries got a reply, from ${sockets} sockets on ${askersText(observed, clients)}, for ${names} ${names === 1 ? 'name' : 'names'}, until ${clock(endMs)}.`,
      'It did not answer again before the capture ended.',
    ],
    why: `Everything stopped at once. The server (or the one behind the address) hangs or is gone, or something in between, such as a network policy, has blocked all traffic since then.${clients.size === 1 ? ' The capture has only one client, so it does not show which.' : ''}`,
    fix: [
      'Check whether other clients get replies at that time. If not, check the server (kubectl -n kube-system get pods for restarts), its node, and its memory and CPU limits.',
      'If they do, determine what changed for these clients. Check kubectl get networkpolicy -A, and the rules and log of the node’s network plugin.',
    ],
    prove: `run ndots query kubernetes.default @${address} on the client’s node and on another, and check kubectl get events -A around ${clock(lastReplyMs)} UTC`,
    disproved: 'a longer capture shows replies to these queries',
    exchanges: [...losses],
  };
}

/** A server that was silent several times and worked in between. */
function silentAgain(
  { view: { address }, silent, losses }: RepeatedSilence,
  observed: Observations,
): FoundCause {
  const clients = new Set(losses.map(({ client }) => client.address));
  const times = silent.map(
    ({ pause, losses: theirs }) => `${fromTo(pause.fromMs, pause.toMs)} (${theirs.length} queries)`,
  );
  return {
    severity: 'critical',
    confidence: 0.85,
    seen: [
      `${address} stopped answering altogether ${silent.length} times: ${listed(times, 6)}.`,
      `In total, ${losses.length} queries from ${askersText(observed, clients)} were lost, while (nearly) all queries in between were answered. Waiting clients send no queries, so the server or the path to it may have recovered sooner.`,
    ],
    why: 'Everything stopped, came back and stopped again. A link or an interface goes down and up, a route is withdrawn, a node hangs, or a server restarts repeatedly (because of a liveness probe or its memory limit).',
    fix: [
      'Determine what happened on the network path at these times. Check both nodes’ kernel logs (link is down, carrier), the routes and the network plugin’s log.',
      'Check whether DNS pods restart (RESTARTS in kubectl -n kube-system get pods -l k8s-app=kube-dns), and check their memory limits and liveness probes.',
    ],
    prove: `on both nodes, check journalctl -k around ${clock(silent[0]!.pause.fromMs)} UTC, and run kubectl -n kube-system get events,pods`,
    disproved:
      'other connections between the same two hosts kept working at these times, and no DNS pod restarted',
    exchanges: losses,
  };
}

/** A server that sent no reply for seconds, then answered all waiting queries at once. */
function stoodStill({ view, windows, proof, lost, exchanges }: StoodStill): FoundCause {
  const { address } = view;
  const [first] = windows;
  const { queries, own, sockets, names } = waitedIn(windows);
  const few = windows.some(({ meanwhile }) => meanwhile > 0);
  const some = few ? 'sent hardly any replies' : 'sent no replies';
  const what = proof === 'one of several' ? 'left some queries without a reply' : some;
  const times = windows.map(
    ({ fromMs, toMs, waited }) =>
      `at ${clock(fromMs)} for ${took(toMs - fromMs)} (${waited} waiting queries)`,
  );
  return {
    severity: 'critical',
    confidence: proof === 'one of several' ? 0.75 : 0.88,
    seen: [
      windows.length === 1
        ? `${address} ${what} for ${took(first!.toMs - first!.fromMs)} from ${clock(first!.fromMs)} on. Then it answered all ${queries} waiting queries at once, from ${sockets.size} sockets, for ${names} names.`
        : `${address} ${what} for a while ${windows.length} times, and each time then answered all waiting queries at once: ${listed(times, 6)}.`,
      own > 0 && `${own} of these were for cluster names, which the server answers from memory.`,
      proof === 'one of several'
        ? 'Other queries were answered at the same time, so this is one of several servers behind the address.'
        : `At other times, half of its replies come within ${took(view.quantile(0.5))}.`,
      lost > 0 && `Clients gave up on ${lost} queries before it resumed.`,
    ],
    why: 'The process stopped and then resumed. It was suspended, throttled by its CPU limit or replaced by another process, or its node or virtual machine was frozen, out of memory or swapping.',
    fix: [
      proof === 'upstream'
        ? 'Determine what happened to that server at these times. Forward to several upstreams with health checks and max_fails, so that another one is used.'
        : 'Determine what happened to the server at these times. Check its pod’s restarts, memory and CPU limits, and its node’s load.',
      proof !== 'upstream' && 'Run more than one replica, spread over nodes.',
    ],
    prove:
      proof === 'upstream'
        ? `run ndots query example.com @${address} repeatedly on the DNS pods’ node, and check that server’s metrics and log around ${clock(first!.fromMs)} UTC`
        : `run kubectl -n kube-system get events,pods, and check container_cpu_cfs_throttled_periods_total around ${clock(first!.fromMs)} UTC`,
    disproved:
      'the server’s own metrics (coredns_dns_responses_total) count replies during that time',
    exchanges,
  };
}

/** Properties of a server's silence that its texts depend on. */
interface Outage {
  /** It answers again before the capture ends. */
  readonly isBack: boolean;
  /** According to a log, a DNS pod ended. */
  readonly isRollout: boolean;
  /** Only DNS pods query it, and no program does. */
  readonly isUpstream: boolean;
  /** `03:07:20`, UTC. */
  readonly at: string;
}

const lameduck =
  'Make a terminating DNS pod answer for longer than that. Set health { lameduck 20s }, a longer terminationGracePeriodSeconds, and a readinessProbe on /ready with periodSeconds 3 and failureThreshold 1.';
const replicas =
  'Run more than one replica, spread over nodes, with a PodDisruptionBudget that allows one unavailable pod.';
const look =
  'Check the server or the pods behind the address for restarts, a rollout, memory and CPU limits, or node problems at that time.';

/** The parts of the finding that depend on these properties. */
function outageAdvice({
  isBack,
  isRollout,
  isUpstream,
  at,
}: Outage): Pick<FoundCause, 'why' | 'fix' | 'prove' | 'disproved'> {
  const events = `run kubectl -n kube-system get events,endpointslices -l k8s-app=kube-dns and look around ${at} UTC; kubectl -n kube-system get pods shows restarts`;
  const disproved =
    'no DNS pod ended, restarted or moved at that time, and the clients’ node also lost other packets';
  if (isUpstream)
    return {
      why: `The DNS pods’ upstream ${isBack ? 'was down or hung for a while' : 'is gone, hangs or can no longer be reached'}. Names that are not cached get no answer during that time.`,
      fix: [
        'Determine what happened at that time to the upstream and to the network path from the nodes (a firewall, a route).',
        'Configure more than one upstream in forward, which checks their health.',
        'Set cache { serve_stale }, so that names that were answered before still get answers.',
      ],
      prove:
        'run ndots query example.com @SERVER on a node, and check coredns_forward_healthcheck_broken_total',
      disproved:
        'the upstream answered other clients at that time (then the path from these nodes is at fault)',
    };
  if (!isBack && !isRollout)
    return {
      why: 'Everything stopped at once, for all names. The server (or the one behind the address) hangs or is gone, or something in between has blocked all traffic since then.',
      fix: [
        look,
        'If the server is healthy, determine what changed on the path (network policies, the node’s rules and routes).',
        replicas,
      ],
      prove: events,
      disproved,
    };
  return {
    why: `${isBack ? 'Everything stopped at once and came back at once, so the server behind the address was stopped or replaced' : 'The server behind the address went away, and others replaced it'}. When a DNS pod terminates, the Service keeps sending packets to it until its endpoint is removed on every node. That happens only after the readiness probe has failed and the rules are written.`,
    fix: isRollout
      ? [lameduck, replicas]
      : [
          look,
          `If DNS pods were replaced at that time, ${lameduck[0]!.toLowerCase()}${lameduck.slice(1)}`,
          replicas,
        ],
    prove: events,
    disproved,
  };
}
