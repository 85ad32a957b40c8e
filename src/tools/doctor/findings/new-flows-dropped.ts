/** Queries from new sockets that never leave the node, while one pod opens very many sockets. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { fromTo, listed, share } from '../texts.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from '../observe/observations.ts';
import { MOST } from '../thresholds/evidence.ts';
import { FLOW_SURGE, MIN_NEW_QUERIES, SURGE_BEFORE } from '../thresholds/transport.ts';

/** A pod that opens very many sockets. */
interface FlowSurge {
  readonly address: string;
  readonly opened: number;
  readonly perSecond: number;
  readonly isBefore: boolean;
}

function surgeWithin({ otherSockets }: Observations, fromS: number, toS: number): FlowSurge | null {
  const busiest = otherSockets.busiest(fromS, toS);
  const perSecond = (busiest?.opened ?? 0) / (toS - fromS + 1);
  return busiest === null || perSecond < FLOW_SURGE
    ? null
    : { ...busiest, perSecond, isBefore: false };
}

/** The table was filled before the losses. Its own new sockets have been lost since then. */
function surgeBefore({ otherSockets, firstMs }: Observations, toS: number): FlowSurge | null {
  const fromS = Math.max(toS - SURGE_BEFORE.mostS, Math.floor(firstMs / 1000));
  const busiest = otherSockets.busiest(fromS, toS - 1);
  const perSecond = (busiest?.opened ?? 0) / Math.max(toS - fromS, SURGE_BEFORE.leastS);
  return busiest === null || perSecond < FLOW_SURGE
    ? null
    : { ...busiest, perSecond, isBefore: true };
}

/** The destination of most of the client's TCP connections; empty if it opened none. */
function mostTo({ contacts, lastMs }: Observations, client: string): string {
  const [most] = contacts
    .at(lastMs)
    .filter(({ openings }) => openings.some((opening) => opening.client === client))
    .toSorted((one, other) => other.opened - one.opened);
  return most === undefined ? '' : `, most of them to ${most.server} port ${most.port}`;
}

/** The node accepts no new connections during a surge. */
export const newFlowsDropped: FindingKind = {
  code: 'ND3003',
  title: 'New connections are dropped because the connection tracking table is full',
  name: 'a full connection tracking table',
  inCapture(observed, claims) {
    const stopped = stoppedBefore(observed, claims.open);
    if (stopped === null)
      return unknown('the capture does not show queries both before and after the translation');
    const { lost, passed } = stopped;
    const fresh = lost.filter((loss) => {
      const flow = observed.flows.get(loss);
      return flow !== undefined && loss.sentMs <= flow.firstReplyMs;
    });
    if (fresh.length < MIN_NEW_QUERIES || fresh.length < MOST * lost.length)
      return excluded(
        'sockets that were answered before also lose queries on the node, or hardly any queries are lost there',
      );
    const { fromMs, toMs } = sentSpan(fresh);
    const [fromS, toS] = [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)];
    const surge = surgeWithin(observed, fromS, toS) ?? surgeBefore(observed, fromS);
    if (surge === null)
      return excluded('no pod opens many new sockets before or while queries are lost');
    claims.take(lost);
    const { repeated } = observed.others.between(fromS, toS);
    const sockets = new Set(fresh.map(({ client }) => `${client.address} ${client.port}`));
    const servers = [...new Set(lost.map(({ server }) => server.address))];
    return {
      severity: 'critical',
      confidence: 0.88,
      seen: [
        `${share(lost.length, claims.open.length + lost.length)} lost queries, from ${sockets.size} new sockets, were seen before the translation of ${listed(servers)} but not after it, ${fromTo(fromMs, toMs)}. ${passed} other queries were seen on both sides, so the lost ones were dropped on this node rather than at a DNS server.`,
        `${surge.isBefore ? 'In the seconds before' : 'During that time'}, ${surge.address} opened ${surge.opened} new sockets to other ports, or ${surge.perSecond.toFixed(0)} a second${mostTo(observed, surge.address)}.`,
        repeated > 0 &&
          `While queries were lost, ${repeated} TCP ${repeated === 1 ? 'connection' : 'connections'} to other ports also had to repeat the first packet.`,
      ],
      why: 'Each new socket needs an entry in the node’s connection tracking table. A pod that opens very many sockets, or does not close them, fills the table. The first packet of every new socket is then dropped, including DNS, while sockets that have an entry still work.',
      fix: [
        `Find the pod with kubectl get pods -A -o wide | grep ${surge.address}; then stop it, slow it down, or make it close or reuse its connections.`,
        'Until then, double the limit (sysctl net.netfilter.nf_conntrack_max, or conntrack.maxPerCore in kube-proxy), and shorten nf_conntrack_udp_timeout.',
        'Use a node-local cache, which keeps DNS out of the table.',
      ],
      prove:
        'on the node, run sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max, conntrack -S (drop, early_drop) and dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while new sockets lose queries (then a rule on the node limits new connections, such as iptables -m connlimit or hashlimit, or nft ct count)',
      exchanges: lost,
    };
  },
};
