/**
 * A dead Service endpoint that no packet reaches. A capture on the node shows its queries before address translation
 * but not after it.
 */
import type { FlowView } from '../observe/flow-view.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import { isSilent } from '../observe/sockets.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, share } from '../texts.ts';
import { MIN_CASES, MIN_LASTING_MS, MIN_QUERIES, NEARLY_ALL } from '../thresholds/evidence.ts';
import { ENDPOINT_SHARE_DEVIATIONS } from '../thresholds/silence.ts';

/** With k live endpoints, one in k + 1 choices is lost. */
export const unseenEndpoint: FindingKind = {
  code: 'ND3008',
  title: 'A DNS pod behind the Service does not answer',
  name: 'a dead DNS pod that no packet reaches',
  inCapture(observed, claims) {
    const stopped = stoppedBefore(observed, claims.open);
    if (stopped === null || stopped.lost.length < NEARLY_ALL * claims.open.length)
      return unknown('the capture does not show queries both before and after the translation');
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
        answered(view.outcomes) >= MIN_CASES && [...view.clients].some((each) => clients.has(each)),
    );
    const flows = observed.flows.list.filter(
      ({ client, server, lastMs }) =>
        servers.has(server) && clients.has(client) && lastMs >= fromMs,
    );
    const choices = choicesOf(flows, fresh.length);
    const part = 1 / (live.length + 1);
    const deviation = Math.sqrt(choices.all * part * (1 - part));
    const isShare =
      Math.abs(choices.lost - choices.all * part) <= ENDPOINT_SHARE_DEVIATIONS * deviation;
    if (live.length === 0 || choices.all < MIN_QUERIES || !isShare)
      return excluded(
        `${share(choices.lost, choices.all)} new sockets lose a query on the node, which is not one share of ${live.length + 1} endpoints`,
      );
    claims.take(claims.open);
    const alive = listed(live.map(({ address }) => address));
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.8,
      seen: [
        `${lost.length} queries to ${listed([...servers])} got no reply, from ${clock(fromMs)} to ${clock(toMs)}. They were seen before the translation of that address but not after it, so the endpoint that they were translated to cannot be reached.`,
        `The other queries were answered by ${live.length} ${live.length === 1 ? 'endpoint' : 'endpoints'} (${alive}).`,
        `${share(choices.lost, choices.all)} endpoint choices were lost. One dead endpoint alongside ${live.length} live ${live.length === 1 ? 'one' : 'ones'} loses one in ${live.length + 1}.`,
        'Sockets that have received a reply lose nothing, because connection tracking keeps them on a live endpoint.',
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

/** True if the socket had not received a reply when this query was sent. */
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
