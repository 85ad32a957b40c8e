/** A server that stops answering all clients, and may start again. */
import type { Observations } from '../observe/observations.ts';
import { takeSilence } from '../observe/consequences.ts';
import { excluded, unknown, type Finding, type FindingKind } from './finding.ts';
import { clock, listed, percent, took } from '../texts.ts';
import { areSilentByChance } from '../observe/sockets.ts';
import { howNewOnesSuffer } from '../observe/new-socket-losses.ts';
import {
  hitsAllAlike,
  isAnsweredElse,
  onlyAaaa,
  waitsForOthers,
  wentAstray,
} from '../observe/losses.ts';
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

/** All replies stop for a while, or for good, for all clients at once. */
export const outage: FindingKind = {
  code: 'ND3007',
  title: 'A name server stopped answering for a while',
  name: 'a restart or a rollout of the DNS pods',
  inCapture(observed, claims) {
    if (observed.seconds < MIN_OUTAGE_SECONDS) return unknown('the capture is too short');
    const views = [...observed.backends.list, ...observed.servers.list];
    // Clients that were answered before are still answered: it is not the server.
    if (howNewOnesSuffer(observed) !== null) return excluded('only new sockets get no replies');
    for (const view of views) {
      const window = silenceOf(view, observed);
      if (window === null) continue;
      const { fromS, toS } = window;
      if (hitsAllAlike(observed, [window])) continue;
      const isMeanwhile = ({ sentMs }: SeenExchange): boolean =>
        sentMs >= fromS * 1000 && sentMs < (toS + 1) * 1000;
      const theirs = claims.openTo(view.address);
      const losses = theirs.filter(isMeanwhile);
      const names = new Set(losses.map(({ name }) => name));
      if (losses.length < MIN_CASES || wentAstray(losses)) continue;
      // If most of it is explained, the others are the rest of it, and so are losses from reused
      // ports.
      const explained = claims.explainedTo(view.address).filter(isMeanwhile);
      if (losses.length < OUTAGE_REST * explained.length) {
        claims.take(losses);
        continue;
      }
      if (losses.filter((loss) => isAnsweredElse(observed, loss)).length < MIN_CASES) continue;
      if (onlyAaaa(losses)) continue;
      const span = { fromMs: fromS * 1000, toMs: (toS + 1) * 1000 };
      if (waitsForOthers(observed, view.address, span.fromMs, span.toMs)) continue;
      if (isOfSomeSockets(losses, theirs)) continue;
      if (areSilentByChance(observed.flows.to(view.address), span)) continue;
      // Others are answered at the time, or these names never again. Losses before it are better
      // evidence than the time in which all clients wait.
      const earlier = theirs.filter(({ sentMs }) => sentMs < fromS * 1000);
      const lots =
        earlier.length < MIN_EARLIER_LOSSES ? [losses] : [losses, [...earlier, ...losses]];
      if (lots.some((lot) => deadNames(observed, lot).some(({ chance }) => chance < UNLIKELY_DEAD)))
        continue;
      takeSilence(observed, claims, losses);
      const together = silentToo(views, view, window, observed, claims);
      const { fromMs, backMs } = edgesOf(view, window);
      const removedMs = backMs === null ? removedFrom(view, observed) : null;
      const clients = new Set(losses.map(({ client }) => client.address));
      const known = observed.counters.get('lameduck') !== null;
      return {
        code: this.code,
        title: this.title,
        severity: 'critical',
        confidence: known ? 0.95 : 0.85,
        seen: [
          `${view.address} answered until ${clock(fromMs)}; of ${window.asked} queries in the following ${toS - fromS + 1} s ${window.lost} got no reply (${percent(window.lost, window.asked)}), of ${askersText(observed, clients)}, for ${names.size} ${names.size === 1 ? 'name' : 'names'}.`,
          ...(together.length > 0 ? [`${listed(together)} fell silent at the same time.`] : []),
          backMs === null
            ? 'It does not answer again before the capture ends.'
            : `Its next reply comes at ${clock(backMs)}, ${took(backMs - fromMs)} later.`,
          ...(removedMs === null
            ? []
            : [
                `From ${clock(removedMs)} on nothing is sent to it, and others answer: its endpoint was removed.`,
              ]),
          ...unreachableText(view.address, observed),
          ...(known ? ['The log says that a server went into lameduck mode.'] : []),
        ],
        ...outageAdvice({
          isBack: backMs !== null,
          isRollout: known || removedMs !== null,
          isUpstream: upstreams(observed).has(view.address),
          at: clock(fromMs),
        }),
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
    return excluded('no server was silent to all clients for a time, and well before or after it');
  },
};

/**
 * True if the losses are of so few sockets that those which the server loses at other times explain
 * them: one of several servers behind the address is dead, and waiting clients ask nothing else.
 */
function isOfSomeSockets(losses: readonly SeenExchange[], all: readonly SeenExchange[]): boolean {
  const socketOf = ({ client }: SeenExchange): string => `${client.address} ${client.port}`;
  const own = new Set(losses.map(socketOf));
  const others = new Set(all.map(socketOf).filter((socket) => !own.has(socket)));
  return others.size >= MIN_CASES && own.size <= 2 * others.size;
}

/** ICMP errors for the port from the host that has the address: it is up, and not a name server. */
function unreachableText(address: string, { unreachable }: Observations): readonly string[] {
  const errors = unreachable.get(address);
  if (errors === undefined || errors.count < MIN_CASES || !CLOSED.has(errors.code)) return [];
  return [
    `${errors.count} of these came back as port unreachable (ICMP): a machine has that address, but no name server listens there. Its process ended, or another machine took the address (arping -D, or ip neigh before and after: two hardware addresses).`,
  ];
}

/** A server that answered (nearly) everything, and then nothing more. */
function silentToTheEnd(
  { view, losses, sockets, names, endMs }: SilentForGood,
  observed: Observations,
): Finding {
  const { address, outcomes, lastReplyMs, sinceReply } = view;
  const clients = new Set(sinceReply.map(({ client }) => client.address));
  return {
    code: 'ND3007',
    title: 'A name server stopped answering for a while',
    severity: 'critical',
    confidence: 0.8,
    seen: [
      `${address} answered ${outcomes.asked - outcomes.lost} of ${outcomes.asked - losses.length} queries until ${clock(lastReplyMs)}, and then nothing: ${sinceReply.length} queries from ${sockets} sockets of ${askersText(observed, clients)}, for ${names} ${names === 1 ? 'name' : 'names'}, up to ${clock(endMs)}.`,
      'It does not answer again before the capture ends.',
    ],
    why: `Everything stops at once: the server (or the one behind the address) hangs or is gone, or something in between, such as a network policy, blocks everything from then on.${clients.size === 1 ? ' With only one client, the capture cannot tell these apart.' : ''}`,
    fix: [
      'Check whether other clients get replies at that time. If not, check the server (kubectl -n kube-system get pods for restarts), its node, and its memory and CPU limits.',
      'If they do, determine what changed for these clients (kubectl get networkpolicy -A; the rules and log of the node’s network plugin).',
    ],
    prove: `ndots query kubernetes.default @${address} from the client’s node and from another; kubectl get events -A around ${clock(lastReplyMs)} UTC`,
    disproved: 'a longer capture shows replies to these queries',
    exchanges: [...losses],
  };
}

/** A server that was silent several times, and well in between. */
function silentAgain(
  { view: { address }, silent, losses }: RepeatedSilence,
  observed: Observations,
): Finding {
  const clients = new Set(losses.map(({ client }) => client.address));
  const times = silent.map(
    ({ pause, losses: theirs }) =>
      `from ${clock(pause.fromMs)} to ${clock(pause.toMs)} (${theirs.length} queries)`,
  );
  return {
    code: 'ND3007',
    title: 'A name server stopped answering for a while',
    severity: 'critical',
    confidence: 0.85,
    seen: [
      `${silent.length} times, ${address} answered no query at all: ${listed(times, 6)}.`,
      `These are ${losses.length} queries of ${askersText(observed, clients)}; in between (nearly) all queries are answered. Waiting clients send nothing, so the server, or the path to it, may have recovered sooner.`,
    ],
    why: 'If everything stops at once, comes back and stops again, a link or an interface goes down and up, a route is withdrawn, a node hangs, or a server restarts repeatedly (a liveness probe, memory).',
    fix: [
      'Determine what happened in between at these times: check the kernel log of both nodes (link is down, carrier), the routes and the network plugin’s log.',
      'Check whether DNS pods restart: kubectl -n kube-system get pods -l k8s-app=kube-dns (RESTARTS). Check their memory limits and liveness probes.',
    ],
    prove: `journalctl -k --since around ${clock(silent[0]!.pause.fromMs)} UTC on both nodes; kubectl -n kube-system get events,pods`,
    disproved:
      'other connections between the same two hosts keep working at these times, and no DNS pod restarted',
    exchanges: losses,
  };
}

/** A server that gave no reply for seconds, and then all at once to those that had waited. */
function stoodStill({ view, windows, proof, lost, exchanges }: StoodStill): Finding {
  const { address } = view;
  const [first] = windows;
  const { queries, own, sockets, names } = waitedIn(windows);
  const few = windows.some(({ meanwhile }) => meanwhile > 0);
  const some = few ? 'gave hardly a reply' : 'gave not one reply';
  const what = proof === 'one of several' ? 'left some queries without a reply' : some;
  const times = windows.map(
    ({ fromMs, toMs, waited }) =>
      `at ${clock(fromMs)} for ${took(toMs - fromMs)} (${waited} queries waited)`,
  );
  return {
    code: 'ND3007',
    title: 'A name server stopped answering for a while',
    severity: 'critical',
    confidence: proof === 'one of several' ? 0.75 : 0.88,
    seen: [
      windows.length === 1
        ? `${address} ${what} from ${clock(first!.fromMs)} on for ${took(first!.toMs - first!.fromMs)}, and then at once those to all ${queries} queries that had waited, from ${sockets.size} sockets, for ${names} names.`
        : `${address} ${what} ${windows.length} times, and each time then at once those to all that had waited: ${listed(times, 6)}.`,
      ...(own > 0
        ? [`${own} of these were for cluster names, which the server has in memory.`]
        : []),
      ...(proof === 'one of several'
        ? [
            'Others are answered at the same time: this is one of several servers behind this address.',
          ]
        : [`Otherwise half of its replies come within ${took(view.quantile(0.5))}.`]),
      ...(lost > 0 ? [`${lost} queries were given up before it continued.`] : []),
    ],
    why: 'The process stopped and continued: it was stopped, its CPU limit throttled it, its node or virtual machine was frozen, out of memory or swapping, or another process replaced it.',
    fix: [
      proof === 'upstream'
        ? 'Determine what happened to that server at these times. Forward to more than one upstream, with health checks and max_fails, so that another one is used.'
        : 'Determine what happened to the server at these times: check its pod’s restarts, memory and CPU limits, and its node’s load.',
      ...(proof === 'upstream' ? [] : ['Run more than one replica, spread over nodes.']),
    ],
    prove:
      proof === 'upstream'
        ? `ndots query example.com @${address} from the DNS pods’ node, repeatedly; check that server’s metrics and log around ${clock(first!.fromMs)} UTC`
        : `kubectl -n kube-system get events,pods around ${clock(first!.fromMs)} UTC; container_cpu_cfs_throttled_periods_total`,
    disproved:
      'the server’s own metrics count replies during that time (coredns_dns_responses_total)',
    exchanges,
  };
}

/** A sentence about the silence of a server. */
interface Outage {
  /** It answers again before the capture ends. */
  readonly isBack: boolean;
  /** A log says that a DNS pod ended. */
  readonly isRollout: boolean;
  /** DNS pods ask it, and no program does. */
  readonly isUpstream: boolean;
  /** `03:07:20`, UTC. */
  readonly at: string;
}

const lameduck =
  'Make a terminating DNS pod answer for longer than that: set health { lameduck 20s }, and terminationGracePeriodSeconds above it. Use a readinessProbe on /ready with periodSeconds 3 and failureThreshold 1.';
const replicas =
  'Run more than one replica, spread over nodes, with a PodDisruptionBudget of at most one.';
const look =
  'Check the server, or the pods behind the address, at that time: restarts, a rollout, memory and CPU limits, the node.';

/** The parts of the finding that depend on it. */
function outageAdvice({
  isBack,
  isRollout,
  isUpstream,
  at,
}: Outage): Pick<Finding, 'why' | 'fix' | 'prove' | 'disproved'> {
  const events = `kubectl -n kube-system get events,endpointslices -l k8s-app=kube-dns around ${at} UTC; kubectl -n kube-system get pods for restarts`;
  const disproved =
    'no DNS pod ended, restarted or moved at that time, and the clients’ node lost other packets too';
  if (isUpstream)
    return {
      why: `The upstream of the DNS pods ${isBack ? 'was down, or hung, for a while' : 'is gone, hangs, or can no longer be reached'}. Names that are not cached get no answer during that time.`,
      fix: [
        'Determine what happened at that time to the upstream, and to the path from the nodes to it (a firewall, a route).',
        'Use more than one upstream, with health checks (which forward does).',
        'Set cache { serve_stale }, so that previously answered names still get answers.',
      ],
      prove:
        'from a node: ndots query example.com @SERVER; coredns_forward_healthcheck_broken_total',
      disproved: 'it answers others at that time, which points to the path from these nodes',
    };
  if (!isBack && !isRollout)
    return {
      why: 'Everything stops at once, for all names: the server (or the one behind the address) hangs or is gone, or something in between blocks everything from then on.',
      fix: [
        look,
        'If it is healthy, determine what changed in between (network policies, the node’s rules and routes).',
        replicas,
      ],
      prove: events,
      disproved,
    };
  return {
    why: `${isBack ? 'Everything stops at once and comes back at once: the server behind the address was gone, or stopped' : 'The server behind the address went away, and others replaced it'}. When a DNS pod terminates, the Service sends packets to it until its endpoint is removed on every node: until the readiness probe fails and the rules are written.`,
    fix: isRollout
      ? [lameduck, replicas]
      : [
          look,
          `If DNS pods were replaced then: ${lameduck[0]!.toLowerCase()}${lameduck.slice(1)}`,
          replicas,
        ],
    prove: events,
    disproved,
  };
}
