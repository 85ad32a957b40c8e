/** Clients that get no reply at all for a time in which the same server answers others. */
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from '../observe/claims.ts';
import { isProvenDeaf } from '../observe/edns-losses.ts';
import type { Observations } from '../observe/observations.ts';
import { acceptedDuring } from '../observe/other-contacts.ts';
import { isForwarder } from '../observe/roles.ts';
import type { ServerView } from '../observe/server-view.ts';
import { clock, fromTo, listed, share } from '../texts.ts';
import { MIN_CASES, MIN_LASTING_MS, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { POLICY_CUT, POLICY_CUT_TIME } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** A client whose queries were all lost, and the time in which they were sent. */
interface Cut {
  readonly address: string;
  readonly losses: readonly SeenExchange[];
  readonly fromMs: number;
  readonly toMs: number;
}

/** Some clients lose all queries for a time, others none, and both are answered at other times. */
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
      if (cut.length === 0) continue;
      const addresses = cut.map(({ address }) => address);
      const [fromMs, toMs] = [
        Math.min(...cut.map((each) => each.fromMs)),
        Math.max(...cut.map((each) => each.toMs)),
      ];
      const fine = fineMeanwhile(server.address, observed, addresses, fromMs, toMs);
      if (fine === null) continue;
      const losses = cut.flatMap((each) => each.losses);
      const before = answeredAt(observed, server.address, addresses, -Infinity, fromMs);
      const afterMs = Math.min(
        ...flowsOf(observed, server.address, addresses).flatMap(({ firstReplyMs }) =>
          firstReplyMs > toMs ? firstReplyMs : [],
        ),
      );
      // The answers of a policy that is always there: `policyCut`.
      if (!before && afterMs === Infinity) continue;
      claims.take(losses);
      const isSeenBehind = fine.some((client) => hasBackend(observed, client));
      const isUntranslated = losses.every(({ hops }) => hops.length === 0);
      const accepted = acceptedDuring(observed, addresses, fromMs, toMs);
      return {
        code: this.code,
        title: 'Some pods were cut off from DNS for a time, while others were not',
        severity: 'critical',
        confidence: accepted > 0 || cut.length > 1 ? 0.93 : 0.85,
        seen: [
          `${share(losses.length, losses.length)} queries that ${listed(addresses)} sent to ${server.address} ${fromTo(fromMs, toMs)} got no reply, from every port and for every name.`,
          `During this time, ${server.address} answered ${listed(fine)}, without a loss.`,
          ...(isSeenBehind && isUntranslated
            ? [
                `The lost queries are seen before the translation of ${server.address} and never after it, so they were dropped at the clients’ end and not at a DNS pod.`,
              ]
            : []),
          ...(accepted > 0
            ? [
                `${accepted} other connections of ${listed(addresses)} were accepted during this time, so only DNS was blocked.`,
              ]
            : []),
          afterMs < Infinity
            ? `From ${clock(afterMs)} on, ${listed(addresses)} got replies, so the cause was fixed at that time.`
            : 'Before that, these clients were answered, so something changed then.',
        ],
        why: 'Losses that depend only on the client are caused by a rule, such as a NetworkPolicy with a default that denies egress and no exception for DNS. Other ports may be allowed. The DNS pods answered throughout.',
        fix: [
          `Allow these pods UDP and TCP port 53 to the DNS pods (kubectl get networkpolicy -n NAMESPACE -o yaml, and policies of the network plugin).${afterMs < Infinity ? ` Check what changed at ${clock(afterMs)} UTC, and make sure that the change is kept.` : ''}`,
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

/** Clients whose queries were all lost in the time of their losses, from several ports. */
function cutOff(server: ServerView, observed: Observations, claims: Claims): readonly Cut[] {
  const byClient = Map.groupBy(claims.openTo(server.address), ({ client }) => client.address);
  return [...byClient].flatMap(([address, losses]) => {
    const { fromMs, toMs } = sentSpan(losses);
    const ports = new Set(losses.map(({ client }) => client.port));
    if (losses.length < POLICY_CUT.queries || ports.size < POLICY_CUT_TIME.ports) return [];
    if (toMs - fromMs < MIN_LASTING_MS || isForwarder(observed, address)) return [];
    return answeredAt(observed, server.address, [address], fromMs, toMs)
      ? []
      : [{ address, losses, fromMs, toMs }];
  });
}

/** Clients that the server answered in that time, if (nearly) no client but these lost anything; else null. */
function fineMeanwhile(
  server: string,
  observed: Observations,
  cut: readonly string[],
  fromMs: number,
  toMs: number,
): readonly string[] | null {
  const isIn = (ms: number): boolean => ms > fromMs && ms < toMs;
  const others = observed.flows.to(server).filter(({ client }) => !cut.includes(client));
  const answered = others.filter(
    ({ firstReplyMs, lastAnsweredMs }) => isIn(firstReplyMs) || isIn(lastAnsweredMs),
  );
  const lost = observed.losses.filter(
    (loss) =>
      loss.server.address === server && isIn(loss.sentMs) && !cut.includes(loss.client.address),
  );
  if (answered.length < POLICY_CUT_TIME.others || lost.length > 0) return null;
  return [...new Set(answered.map(({ client }) => client))];
}

/** True if the server sent one of these clients a reply in that time. */
function answeredAt(
  observed: Observations,
  server: string,
  clients: readonly string[],
  fromMs: number,
  toMs: number,
): boolean {
  return flowsOf(observed, server, clients).some(({ firstReplyMs, lastAnsweredMs }) =>
    [firstReplyMs, lastAnsweredMs].some(
      (ms) => ms > fromMs + (fromMs > -Infinity ? SAME_MOMENT_MS : 0) && ms < toMs,
    ),
  );
}

function flowsOf({ flows }: Observations, server: string, clients: readonly string[]) {
  return flows.to(server).filter(({ client }) => clients.includes(client));
}

function hasBackend({ backends }: Observations, client: string): boolean {
  return backends.list.some(
    ({ clients, outcomes }) => clients.has(client) && outcomes.asked >= MIN_CASES,
  );
}
