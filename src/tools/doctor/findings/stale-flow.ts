/** Sockets that get no replies, while the same client’s other sockets do. */
import type { FlowView } from '../observe/flow-view.ts';
import type { Observations } from '../observe/observations.ts';
import type { ServerView } from '../observe/server-view.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind, type Verdict } from './finding.ts';
import { clock } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { answeredBetween, hitsAllAlike } from '../observe/losses.ts';
import { serveTheSame } from '../observe/roles.ts';
import { LATE_MS, MAX_CHANCE, MIN_CASES, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import {
  BUSY_SERVER_LOST,
  MAX_STALE,
  MIN_ANSWERED_BEFORE,
  NEW_SOCKETS_ELSEWHERE,
  REUSED_SOCKET,
  STALE_FLOW,
  STALE_REPEATS,
} from '../thresholds/silence.ts';
import { REUSED_PORTS } from '../thresholds/transport.ts';

/** One of a client’s ports stops getting replies at some moment, while others still get them. */
export const staleFlow: FindingKind = {
  code: 'ND3002',
  title: 'A socket gets no more replies because its packets go to a server that is gone',
  name: 'a stale connection tracking entry',
  inCapture(observed, claims) {
    const flows = silentFlows(observed).filter(({ lastAnsweredMs }) => lastAnsweredMs > -Infinity);
    const found = take(observed, claims, flows);
    if (found === null) return missing(observed);
    const { flow, losses } = found;
    return {
      severity: 'critical',
      confidence: found.isAlone ? 0.7 : 0.93,
      seen: [
        `Queries from ${flow.client} port ${flow.port} to ${flow.server} were answered until ${clock(flow.lastAnsweredMs)}, but the next ${flow.unanswered} got no reply${flow.unansweredTries > flow.unanswered ? `, nor did any of their ${flow.unansweredTries - flow.unanswered} repeats` : ''}.`,
        found.isAlone
          ? `All queries to ${flow.server} left from this port, so the capture does not show whether new sockets still get replies. No ICMP error came back.`
          : found.elsewhere === 0
            ? `Other ports got replies from ${flow.server} during the same time.`
            : `${flow.server} no longer answers any client, and (nearly) no later socket queries it. ${found.elsewhere} new sockets went to other servers for the same clients and got replies.`,
        found.others > 0 &&
          `${found.others} more ${found.others === 1 ? 'socket is' : 'sockets are'} in the same state${found.elsewhere > 0 ? ' (long-lived ones, and ones that reuse an earlier socket’s port)' : ''}.`,
      ],
      why: 'The program uses one socket for all its queries (as Envoy, nginx and statsd clients do). For that socket, connection tracking stores which DNS pod the Service’s address leads to, and each packet renews the entry. The pod is gone, but the entry was not removed.',
      fix: [
        `For now, on the client’s node, run conntrack -D -p udp --orig-src ${flow.client} --orig-port-dst 53`,
        'Permanently, use a kube-proxy that removes such entries (1.32 and later), a node-local cache (no address translation), or a client that opens a new socket after a time-out.',
      ],
      prove: `on the node, conntrack -L -p udp --orig-src ${flow.client} | grep 'sport=${flow.port} ' shows a reply src that is not an endpoint of the Service`,
      disproved: found.isAlone
        ? `a new socket on the same pod gets no reply from ${flow.server} either, so the server or the path is down`
        : 'the reply src of that entry is a running DNS pod',
      exchanges: losses,
    };
  },
};

/** One port has never got a reply, while others do. */
export const deadFlow: FindingKind = {
  code: 'ND3017',
  title: 'A socket never gets a reply because it was opened before the Service was ready',
  name: 'a socket that was opened before the Service was ready',
  inCapture(observed, claims) {
    const isDead = ({ lastAnsweredMs }: FlowView): boolean => lastAnsweredMs === -Infinity;
    // If many new sockets get no reply, the sockets are not at fault.
    const dead = observed.flows.list.filter((flow) => flow.lost > 0 && isDead(flow));
    if (dead.length > MAX_STALE) return excluded('many sockets never get a reply');
    const flows = silentFlows(observed).filter(isDead);
    const found = take(observed, claims, flows);
    if (found === null) return missing(observed);
    const { flow, losses } = found;
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: [
        `None of ${flow.unanswered} queries from ${flow.client} port ${flow.port} to ${flow.server} was answered, over ${(flow.silentMs / 1000).toFixed(0)} s.`,
        `Other ports got replies from ${flow.server} during the same time.`,
      ],
      why: 'The first packet of this socket passed before the Service had rules or endpoints on the node. Connection tracking stored it without address translation, and each further packet renews that entry. The packets go to the Service’s own address, which no host has.',
      fix: [
        `For now, on the client’s node, run conntrack -D -p udp --orig-src ${flow.client} --orig-port-dst 53, or restart the program.`,
        'Permanently, make the program wait until a first lookup succeeds and open a new socket for the next, or use a kube-proxy that removes such entries (1.32 and later).',
      ],
      prove: `on the node, conntrack -L -p udp --orig-src ${flow.client} | grep 'sport=${flow.port} ' shows ${flow.server} itself as the reply src`,
      disproved: 'the entry is translated to a running DNS pod',
      exchanges: losses,
    };
  },
};

/** Several queries, or a few that were repeated for a long time, got no reply on this socket. */
function staysSilent(flow: FlowView): boolean {
  if (flow.unanswered >= STALE_FLOW.queries) return flow.silentMs >= STALE_FLOW.ms;
  return (
    flow.lastAnsweredMs > -Infinity &&
    flow.unansweredTries >= STALE_REPEATS.tries &&
    flow.silentMs >= STALE_REPEATS.ms
  );
}

function silentFlows(observed: Observations): readonly FlowView[] {
  const silent = observed.flows.list.filter(staysSilent);
  return silent.filter(
    (flow) =>
      !isOfBusyServer(observed, flow, silent) &&
      !isOfLossyServer(observed, flow) &&
      !hitsAllAlike(observed, [{ fromS: flow.silentSinceMs / 1000, toS: flow.lastMs / 1000 }]) &&
      // Other clients were answered until the end of the silence, or new sockets reach another pod.
      (isAnsweredMeanwhile(observed, flow) ||
        openedElsewhere(observed, flow) >= NEW_SOCKETS_ELSEWHERE ||
        isOnlySocket(observed, flow)),
  );
}

/** True if the server answers other sockets while this one is silent. */
function isAnsweredMeanwhile(observed: Observations, flow: FlowView): boolean {
  return answeredBetween(observed, flow.server, flow.silentSinceMs + 1000, flow.lastMs + 1000);
}

/**
 * True if the server also lost queries from sockets that are not silent during that time, and was late with the rest.
 * Some sockets then lose all their queries in a row.
 */
function isOfBusyServer(
  { servers, losses }: Observations,
  flow: FlowView,
  silent: readonly FlowView[],
): boolean {
  const { answered, latencyMs } = answeredWithin(servers.get(flow.server), flow);
  const sockets = new Set(silent.map(({ client, port }) => `${client} ${port}`));
  const lost = lostMeanwhile(losses, flow).filter((loss) => !sockets.has(socketOf(loss))).length;
  return (
    lost >= MIN_CASES &&
    lost >= BUSY_SERVER_LOST * (lost + answered) &&
    latencyMs >= LATE_MS * answered
  );
}

/** The answered queries that a server got in that time, and the sum of their latencies, milliseconds. */
function answeredWithin(
  view: ServerView | undefined,
  { silentSinceMs, lastMs }: FlowView,
): { readonly answered: number; readonly latencyMs: number } {
  const sum = { answered: 0, latencyMs: 0 };
  for (const [second, counts] of view?.history ?? []) {
    if (second * 1000 + 1000 <= silentSinceMs || second * 1000 >= lastMs) continue;
    sum.answered += counts.asked - counts.lost;
    sum.latencyMs += counts.latencyMs;
  }
  return sum;
}

/**
 * True if other sockets also lose queries at that time, and are answered again or were opened only
 * then. With such a loss rate, some socket loses as many in a row by chance. A limit on packets does
 * this.
 */
function isOfLossyServer({ flows, losses, servers }: Observations, silent: FlowView): boolean {
  const sinceMs = silent.silentSinceMs;
  const others = flows
    .to(silent.server)
    .filter(
      ({ firstMs, lastMs, lastAnsweredMs }) =>
        lastMs >= sinceMs && (lastAnsweredMs > sinceMs || firstMs > sinceMs),
    );
  const untilMs = new Map(
    others.map(({ client, port, firstMs, lastAnsweredMs }) => [
      `${client} ${port}`,
      firstMs > sinceMs ? Infinity : lastAnsweredMs,
    ]),
  );
  const lost = lostMeanwhile(losses, silent).filter(
    (loss) => loss.sentMs < (untilMs.get(socketOf(loss)) ?? -Infinity),
  ).length;
  if (lost < MIN_CASES) return false;
  const { answered } = answeredWithin(servers.get(silent.server), silent);
  return others.length * (lost / (lost + answered)) ** silent.unanswered >= MAX_CHANCE;
}

/** Queries that the server left unanswered while this socket was silent. */
function lostMeanwhile(
  losses: readonly SeenExchange[],
  { server, silentSinceMs, lastMs }: FlowView,
): readonly SeenExchange[] {
  return losses.filter(
    (loss) =>
      loss.server.address === server && loss.sentMs >= silentSinceMs && loss.sentMs <= lastMs,
  );
}

function socketOf({ client }: SeenExchange): string {
  return `${client.address} ${client.port}`;
}

/**
 * True if a client repeats its queries for a long time on the only socket to an address, without an ICMP error. A
 * server that is down looks the same, but programs that keep one socket for that long are rare.
 */
function isOnlySocket({ flows, unreachable }: Observations, flow: FlowView): boolean {
  return (
    flows.to(flow.server).length === 1 &&
    flow.silentMs >= STALE_REPEATS.ms &&
    flow.asked - flow.lost >= MIN_ANSWERED_BEFORE &&
    flow.asked - flow.lost + flow.unansweredTries >= flow.asked &&
    unreachable.get(flow.server) === undefined
  );
}

/**
 * Counts answered sockets that were opened to other servers for the same clients since the server’s
 * last reply. 0 if new sockets also went to this server, apart from those that reuse an earlier port.
 */
function openedElsewhere(observed: Observations, { server }: FlowView): number {
  const lastReplyMs = observed.servers.get(server)?.lastReplyMs ?? Infinity;
  const later = observed.flows.list.filter(({ firstMs }) => firstMs > lastReplyMs);
  const theirs = later.filter((flow) => flow.server === server).length;
  const peers = new Set(later.map((flow) => flow.server));
  peers.delete(server);
  for (const peer of peers) if (!serveTheSame(observed, server, peer)) peers.delete(peer);
  const count = later.filter((flow) => peers.has(flow.server) && flow.lastAnsweredMs > 0).length;
  return theirs > REUSED_PORTS * count ? 0 : count;
}

interface Found {
  /** The flow that lost the most queries. */
  readonly flow: FlowView;
  readonly losses: readonly SeenExchange[];
  /** More sockets in the same state. */
  readonly others: number;
  /** New sockets that went to other servers instead; 0 if the server keeps answering. */
  readonly elsewhere: number;
  /** No other socket shows whether the server still answers. */
  readonly isAlone: boolean;
}

function take(observed: Observations, claims: Claims, flows: readonly FlowView[]): Found | null {
  const usable = flows.filter((flow) => !isNameOrType(observed, flow));
  const [flow] = usable.toSorted((one, other) => other.unanswered - one.unanswered);
  if (flow === undefined) return null;
  const keys = new Set(usable.map(({ client, port, server }) => `${client} ${port} ${server}`));
  const isDone = !isAnsweredMeanwhile(observed, flow);
  const lastReplyMs = observed.servers.get(flow.server)?.lastReplyMs ?? Infinity;
  const losses = claims.open.filter(
    ({ client, server, sentMs }) =>
      keys.has(`${client.address} ${client.port} ${server.address}`) ||
      // Clients that still query it have an old entry, or sent their queries just as it ended.
      (isDone && server.address === flow.server && sentMs > lastReplyMs - SAME_MOMENT_MS),
  );
  if (losses.length < STALE_FLOW.queries) return null;
  const sockets = new Set(
    losses.map(({ client, server }) => `${client.address} ${client.port} ${server.address}`),
  );
  claims.take(losses);
  const own = losses.filter(
    ({ client }) => client.address === flow.client && client.port === flow.port,
  );
  return {
    flow,
    losses: [...own, ...losses.filter((loss) => !own.includes(loss))],
    others: sockets.size - 1,
    elsewhere: isDone ? openedElsewhere(observed, flow) : 0,
    isAlone: isDone && isOnlySocket(observed, flow),
  };
}

/** True if no client gets an answer for this socket's names, so the socket is not at fault. */
function isNameOrType(observed: Observations, flow: FlowView): boolean {
  const losses = observed.losses.filter(
    ({ client, server }) =>
      client.address === flow.client && client.port === flow.port && server.address === flow.server,
  );
  const names = new Map(losses.map((loss) => [`${loss.type} ${loss.name}`, loss]));
  const never = [...names.values()].filter(({ name, type }) => {
    const view = observed.names.get(name, type);
    return view !== undefined && view.outcomes.lost === view.outcomes.asked;
  });
  // Otherwise another socket gets answers, or there are many names.
  return (
    names.size < STALE_FLOW.queries && never.length === names.size && !othersDiffer(observed, flow)
  );
}

/** True if the client’s other sockets get replies for the same names. */
function othersDiffer(observed: Observations, flow: FlowView): boolean {
  return observed.flows.list.some(
    (other) =>
      other.client === flow.client &&
      other.port !== flow.port &&
      other.lastAnsweredMs > flow.silentSinceMs,
  );
}

function missing(observed: Observations): Verdict {
  if (observed.flows.list.some(({ unanswered }) => unanswered >= STALE_FLOW.queries))
    return excluded('other sockets also got no reply, or another finding explains the losses');
  const reused = observed.flows.list.some(({ asked }) => asked > REUSED_SOCKET);
  return reused
    ? excluded('every socket that keeps sending queries is answered')
    : unknown('no client uses one socket for many queries');
}
