/** Clients that get no replies for a time, while the same server answers others. */
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from '../observe/claims.ts';
import { isProvenDeaf } from '../observe/edns-losses.ts';
import type { Observations } from '../observe/observations.ts';
import { openedDuring, openedText } from '../observe/other-contacts.ts';
import { isForwarder } from '../observe/roles.ts';
import type { ServerView } from '../observe/server-view.ts';
import { clock, fromTo, listed } from '../texts.ts';
import { MIN_CASES, MIN_LASTING_MS, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { POLICY_CUT, POLICY_CUT_TIME } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const cutForATime: FindingKind = {
  code: 'ND3004',
  title: 'Some pods are cut off from DNS, while others are not',
  name: 'a network policy',
  inCapture(observed, claims) {
    if (observed.clients.size < 2) return unknown('the capture has one client');
    for (const server of observed.servers.list) {
      // If EDNS decides, the clients that use it get no replies.
      if (isProvenDeaf(server, observed)) continue;
      const cut = cutOff(server, observed, claims);
      if (cut.size === 0) continue;
      const addresses = [...cut.keys()];
      const losses = [...cut.values()].flat();
      const { fromMs, toMs } = sentSpan(losses);
      const fine = fineMeanwhile(server.address, observed, addresses, fromMs, toMs);
      if (fine === null) continue;
      const replyTimes = observed.flows
        .between(addresses, server.address)
        .map(({ firstReplyMs }) => firstReplyMs);
      const afterMs = Math.min(...replyTimes.filter((ms) => ms > toMs));
      // Clients that are never answered are those of `policyCut`.
      if (!replyTimes.some((ms) => ms < fromMs) && afterMs === Infinity) continue;
      claims.take(losses);
      const isSeenBehind = observed.backends.list.some(
        ({ clients, outcomes }) =>
          outcomes.asked >= MIN_CASES && fine.some((client) => clients.has(client)),
      );
      const isUntranslated = losses.every(({ hops }) => hops.length === 0);
      const accepted = openedDuring(observed, addresses, fromMs, toMs).length;
      return {
        title: 'Some pods were cut off from DNS for a time, while others were not',
        severity: 'critical',
        confidence: accepted > 0 || cut.size > 1 ? 0.93 : 0.85,
        seen: [
          `All ${losses.length} queries that ${listed(addresses)} sent to ${server.address} ${fromTo(fromMs, toMs)} got no reply, from every port and for every name.`,
          `During this time, ${server.address} answered every query from ${listed(fine)}.`,
          isSeenBehind &&
            isUntranslated &&
            `The capture shows the lost queries only before ${server.address} was translated to a DNS pod, so they were dropped near the clients and not at a pod.`,
          accepted > 0 && openedText(accepted, addresses),
          afterMs < Infinity
            ? `From ${clock(afterMs)} on, ${listed(addresses)} got replies, so the cause was fixed at that time.`
            : `Until ${clock(fromMs)}, these clients were answered, so something changed at that time.`,
        ],
        why: 'Losses that depend only on the client are caused by a rule, such as a NetworkPolicy that denies egress by default and has no exception for DNS. Other ports may be allowed. The DNS pods answered throughout.',
        fix: [
          `Allow these pods UDP and TCP port 53 to the DNS pods (kubectl get networkpolicy -n NAMESPACE -o yaml, and the network plugin’s own policies).${afterMs < Infinity ? ` Check what changed at ${clock(afterMs)} UTC, and make sure that the fix is permanent.` : ''}`,
          'If no policy selects them, compare the rules for their interfaces with those of other pods on the node (nft list ruleset, iptables-save, cilium-dbg monitor --type drop).',
        ],
        prove: `run kubectl get networkpolicy -A -o yaml and compare with the labels of ${listed(addresses)}; in such a pod, run ndots query kubernetes.default @${server.address}`,
        disproved:
          'no policy or rule selected these pods at that time, or other pods on the same node also lost their queries',
        exchanges: losses,
      };
    }
    return excluded('no client is cut off for a time while others are answered');
  },
};

/** Clients that got no reply between their first loss and their last, on several ports, and their losses. */
function cutOff(
  server: ServerView,
  observed: Observations,
  claims: Claims,
): ReadonlyMap<string, readonly SeenExchange[]> {
  const byClient = Map.groupBy(claims.openTo(server.address), ({ client }) => client.address);
  const isCutOff = (address: string, losses: readonly SeenExchange[]): boolean => {
    const { fromMs, toMs } = sentSpan(losses);
    const ports = new Set(losses.map(({ client }) => client.port));
    if (losses.length < POLICY_CUT.queries || ports.size < POLICY_CUT_TIME.ports) return false;
    if (toMs - fromMs < MIN_LASTING_MS || isForwarder(observed, address)) return false;
    return !observed.flows
      .between([address], server.address)
      .some((flow) => flow.isAnsweredBetween(fromMs + SAME_MOMENT_MS, toMs));
  };
  return new Map([...byClient].filter(([address, losses]) => isCutOff(address, losses)));
}

/** Clients that the server answered in that time. Null if they are too few, or if another client also lost a query. */
function fineMeanwhile(
  server: string,
  observed: Observations,
  cut: readonly string[],
  fromMs: number,
  toMs: number,
): readonly string[] | null {
  const answered = observed.flows
    .to(server)
    .filter((flow) => !cut.includes(flow.client) && flow.isAnsweredBetween(fromMs, toMs));
  const lost = observed.losses.filter(
    ({ client, server: { address }, sentMs }) =>
      address === server && sentMs > fromMs && sentMs < toMs && !cut.includes(client.address),
  );
  if (answered.length < POLICY_CUT_TIME.others || lost.length > 0) return null;
  return [...new Set(answered.map(({ client }) => client))];
}
