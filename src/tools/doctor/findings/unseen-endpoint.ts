/**
 * A dead Service endpoint that no packet reaches. A capture on the node shows its queries before address translation
 * but not after it.
 */
import type { FlowView } from '../observe/flow-view.ts';
import type { Observations } from '../observe/observations.ts';
import { answered as repliesOf } from '../observe/outcomes.ts';
import type { Claims } from '../observe/claims.ts';
import { choices } from '../observe/dead-names.ts';
import { onlyAaaa } from '../observe/losses.ts';
import { isSilent } from '../observe/sockets.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { clock, fromTo, keysOf, listed, percent, sentence, share } from '../texts.ts';
import {
  MAX_CHANCE,
  MIN_CASES,
  MIN_LASTING_MS,
  MIN_QUERIES,
  NEARLY_ALL,
} from '../thresholds/evidence.ts';
import {
  DEAD_POD_SHARES,
  ENDPOINT_SHARE_DEVIATIONS,
  MOST_OF_CAPTURE,
  SILENT_SINGLE_QUERIES,
} from '../thresholds/silence.ts';

/** With k live endpoints, one in k + 1 choices is lost. */
export const unseenEndpoint: FindingKind = {
  code: 'ND3008',
  title: 'A DNS pod behind the Service does not answer',
  name: 'a dead DNS pod behind the Service',
  inCapture(observed, claims) {
    const stopped = stoppedBefore(observed, claims.open);
    if (stopped === null || stopped.lost.length < NEARLY_ALL * claims.open.length)
      return (
        atClient(observed, claims) ??
        unknown('the capture does not show queries both before and after the translation')
      );
    const { lost } = stopped;
    const servers = new Set(lost.map(({ server }) => server.address));
    const clients = new Set(lost.map(({ client }) => client.address));
    const fresh = lost.filter((loss) => isBeforeReply(observed, loss));
    if (fresh.length < NEARLY_ALL * lost.length)
      return excluded('sockets that were answered before also lose queries on the node');
    const { fromMs, toMs } = sentSpan(lost);
    if (lost.length < MIN_CASES || toMs - fromMs < MIN_LASTING_MS)
      return excluded('all losses on the node occurred at one moment');
    const live = observed.backends.list.filter(
      (view) =>
        repliesOf(view.outcomes) >= MIN_CASES &&
        [...view.clients].some((each) => clients.has(each)),
    );
    const flows = observed.flows.list.filter(
      ({ client, server, lastMs }) =>
        servers.has(server) && clients.has(client) && lastMs >= fromMs,
    );
    const drawn = choicesOf(flows, fresh.length);
    const part = 1 / (live.length + 1);
    const deviation = Math.sqrt(drawn.all * part * (1 - part));
    const isShare =
      Math.abs(drawn.lost - drawn.all * part) <= ENDPOINT_SHARE_DEVIATIONS * deviation;
    if (live.length === 0 || drawn.all < MIN_QUERIES || !isShare)
      return excluded(
        `${share(drawn.lost, drawn.all)} new sockets lose a query on the node, which is not one share of ${live.length + 1} endpoints`,
      );
    claims.take(claims.open);
    const alive = listed(live.map(({ address }) => address));
    return {
      severity: 'critical',
      confidence: 0.8,
      seen: [
        `${lost.length} queries to ${listed([...servers])} got no reply, ${fromTo(fromMs, toMs)}. They were seen before the translation of that address but not after it, so the endpoint that they were translated to cannot be reached.`,
        `The other queries were answered by ${live.length} ${live.length === 1 ? 'endpoint' : 'endpoints'} (${alive}).`,
        `${share(drawn.lost, drawn.all)} endpoint choices were lost. One dead endpoint alongside ${live.length} live ${live.length === 1 ? 'one' : 'ones'} loses one in ${live.length + 1}.`,
        'Sockets that have got a reply lose nothing, because connection tracking keeps them with a live endpoint.',
      ],
      why: 'The Service still lists an endpoint that no longer exists. The node finds no route or neighbour for its address, so it drops the query before sending it. Which queries are lost depends only on the endpoint chosen for their source port.',
      fix: [
        `List the endpoints with kubectl -n kube-system get endpointslices -l k8s-app=kube-dns, and the node’s rules with iptables-save | grep -A4 KUBE-SVC | grep DNAT (or ipvsadm -Ln). The dead endpoint is the one that is not ${alive}.`,
        'If only the node’s rules list it, restart kube-proxy there (or its replacement). If the EndpointSlice lists it, delete the pod or the stale slice.',
        'Add a readinessProbe on /ready, which removes a dead pod from the Service.',
      ],
      prove:
        'on the node, run ip route get ENDPOINT and ip neigh show ENDPOINT for each endpoint; the dead one is unreachable or FAILED',
      disproved:
        'all endpoints in the node’s rules answer (then new sockets are dropped because the conntrack table is full, as dmesg and conntrack -S show)',
      exchanges: lost,
    };
  },
};

/**
 * A client’s capture shows no endpoints: many queries of new sockets are lost all the time, and none of sockets that
 * have got a reply.
 */
function atClient(observed: Observations, claims: Claims): FoundCause | null {
  const { open } = claims;
  const { fresh, known } = observed.newSockets.all;
  const servers = new Set(open.map(({ server }) => server.address));
  const { fromMs, toMs } = sentSpan(open);
  const part = fresh.lost / Math.max(1, fresh.asked);
  if (servers.size !== 1 || open.some(({ hops }) => hops.length > 0)) return null;
  if (!open.some(({ name }) => observed.domains.isOfCluster(name))) return null;
  if (onlyAaaa(open) || keysOf(open, ({ name }) => name).length < MIN_CASES) return null;
  if (known.lost > 0 || open.length < fresh.lost || open.length < SILENT_SINGLE_QUERIES.lost)
    return null;
  if (part < SILENT_SINGLE_QUERIES.least || part > DEAD_POD_SHARES.most) return null;
  if (toMs - fromMs < MOST_OF_CAPTURE * (observed.lastMs - observed.firstMs)) return null;
  // A client that is cut off gets no replies in between.
  const answered = new Map<string, number>();
  for (const { client, server, firstReplyMs } of observed.flows.list)
    if (servers.has(server) && firstReplyMs > fromMs && firstReplyMs < toMs)
      answered.set(client, (answered.get(client) ?? 0) + 1);
  const isCut = open.some(({ client }) => (answered.get(client.address) ?? 0) < MIN_CASES);
  if (isCut) return null;
  // If losses did not depend on it, known sockets would have some of them.
  const chance = choices(fresh.asked, fresh.lost) - choices(fresh.asked + known.asked, fresh.lost);
  if (chance >= Math.log(MAX_CHANCE)) return null;
  claims.take(open);
  const [server] = servers;
  const sudden = beganAt(observed, server!, fromMs, part);
  if (sudden !== null) return ofUnknownPlace(observed, open, server!, sudden);
  return {
    severity: 'critical',
    confidence: 0.6,
    seen: [
      `${share(fresh.lost, fresh.asked)} queries to ${server} from sockets without a reply so far were lost, ${fromTo(fromMs, toMs)}. Sockets that had got a reply lost none of ${known.asked} queries.`,
      sentence(`They are for ${listed(keysOf(open, ({ name }) => name))}`),
    ],
    why: `Several pods share the address, and the node chooses one for each new socket. ${percent(part, 1)} of the choices got no reply, which is roughly the share of endpoints that are dead. Once a live one is chosen, connection tracking keeps the socket there. The capture does not show the endpoints themselves.`,
    fix: [
      'List the endpoints with kubectl -n kube-system get endpointslices -l k8s-app=kube-dns, and query each one with ndots query kubernetes.default.svc.cluster.local @ENDPOINT. Remove the one that does not answer.',
      'Compare them with the rules on the client’s node (iptables-save | grep DNAT, or ipvsadm -Ln). If only the rules name the dead one, restart kube-proxy there.',
    ],
    prove: 'run ndots doctor -i any on the client’s node, where the endpoints are visible',
    disproved:
      'all endpoints answer (then new sockets are dropped because the conntrack table is full, as dmesg and conntrack -S show)',
    exchanges: open,
  };
}

/** Sockets before and after the first loss, if it is unlikely by chance that all before it are answered. */
interface SuddenLosses {
  /** Sockets that were opened, and answered, before it. */
  readonly before: number;
  readonly opened: number;
  readonly silent: number;
  readonly fromMs: number;
}

/** @param part the share of queries from new sockets that are lost */
function beganAt(
  { flows }: Observations,
  server: string,
  fromMs: number,
  part: number,
): SuddenLosses | null {
  const [before, later] = [0, 1].map((is) =>
    flows.to(server).filter(({ firstMs }) => Number(firstMs >= fromMs) === is),
  ) as [FlowView[], FlowView[]];
  if ((1 - part) ** before.length >= MAX_CHANCE) return null;
  const silent = later.filter(isSilent).length;
  return { before: before.length, opened: later.length, silent, fromMs };
}

/** A pod that ends, and a full table on the client's node, look the same from the client. */
function ofUnknownPlace(
  { newSockets }: Observations,
  open: readonly SeenExchange[],
  server: string,
  { before, opened, silent, fromMs }: SuddenLosses,
): FoundCause {
  return {
    title: 'Many new sockets get no reply from a moment on, while answered ones lose nothing',
    severity: 'critical',
    confidence: 0.6,
    seen: [
      `From ${clock(fromMs)} on, ${share(silent, opened)} new sockets got no reply from ${server}. All ${before} sockets that were opened before that were answered.`,
      `Sockets that had got a reply lost none of ${newSockets.all.known.asked} queries.`,
    ],
    why: `Either one of the pods behind ${server} has not answered since then, and the node still chooses it for a share of the new sockets. Or the connection tracking table of the client’s node is full, so that the node drops the first packets of new sockets. A client’s capture does not show which.`,
    fix: [
      'On the client’s node, compare nf_conntrack_count with nf_conntrack_max (sysctl), and check dmesg for "table full, dropping packet". If the table is full, find the source with the most entries in conntrack -L.',
      'Otherwise, list the endpoints with kubectl -n kube-system get endpointslices -l k8s-app=kube-dns, and query each one with ndots query kubernetes.default.svc.cluster.local @ENDPOINT.',
    ],
    prove:
      'run ndots doctor -i any on the client’s node, which shows whether the lost queries leave the node, and for which pod',
    disproved:
      'all endpoints answer, and the table has room on the clients’ and the DNS pods’ nodes',
    exchanges: open,
  };
}

/** True if the socket had not got a reply when this query was sent. */
function isBeforeReply({ flows }: Observations, loss: SeenExchange): boolean {
  const flow = flows.get(loss);
  return flow !== undefined && loss.sentMs <= flow.firstReplyMs;
}

/**
 * Counts how often an endpoint was chosen, and how often a dead one. A socket keeps its endpoint once a packet has left
 * the node. A lost packet leaves no entry, so the next one chooses again.
 */
function choicesOf(
  flows: readonly FlowView[],
  lost: number,
): { readonly all: number; readonly lost: number } {
  const silent = flows.filter(isSilent);
  const isKept =
    flows.every((flow) => isSilent(flow) || flow.lost === 0) &&
    silent.filter(({ asked }) => asked > 1).length >= MIN_CASES;
  if (isKept) return { all: flows.length, lost: silent.length };
  return { all: flows.length - silent.length + lost, lost };
}
