/** Queries from new sockets that never leave the node, while one pod opens very many sockets. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { fromTo, listed, share } from '../texts.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { MOST } from '../thresholds/evidence.ts';
import { FLOW_SURGE, MIN_NEW_QUERIES } from '../thresholds/transport.ts';

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
    const busiest = observed.otherSockets.busiest(fromS, toS);
    const perSecond = (busiest?.opened ?? 0) / (toS - fromS + 1);
    if (busiest === null || perSecond < FLOW_SURGE)
      return excluded('no pod opens many new sockets while queries are lost');
    claims.take(lost);
    const sockets = new Set(fresh.map(({ client }) => `${client.address} ${client.port}`));
    const servers = [...new Set(lost.map(({ server }) => server.address))];
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.88,
      seen: [
        `${share(lost.length, claims.open.length + lost.length)} lost queries, from ${sockets.size} new sockets, were seen before the translation of ${listed(servers)} but not after it, ${fromTo(fromMs, toMs)}. ${passed} other queries were seen on both sides, so the lost ones were dropped on this node rather than at a DNS server.`,
        `During that time, ${busiest.address} opened ${busiest.opened} new sockets to other ports, or ${perSecond.toFixed(0)} a second.`,
      ],
      why: 'Each new socket needs an entry in the node’s connection tracking table. A pod that opens very many sockets fills the table. The first packet of every new socket is then dropped, including DNS, while sockets that have an entry still work.',
      fix: [
        `Find the pod with kubectl get pods -A -o wide | grep ${busiest.address}; then stop it, slow it down, or make it reuse connections.`,
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
