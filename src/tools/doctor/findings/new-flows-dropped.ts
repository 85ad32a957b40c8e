/** New sockets that get no further than the node, while one pod opens very many. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, share } from '../texts.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { MOST } from '../thresholds/evidence.ts';
import { FLOW_SURGE, MIN_NEW_QUERIES } from '../thresholds/transport.ts';

/** The node takes no new connections while a surge of them comes. */
export const newFlowsDropped: FindingKind = {
  code: 'ND3003',
  title: 'New connections are dropped: the connection tracking table is full',
  name: 'a full connection tracking table',
  inCapture(observed, claims) {
    const stopped = stoppedBefore(observed, claims.open);
    if (stopped === null)
      return unknown('the capture does not show queries before and behind the translation');
    const { lost, passed } = stopped;
    const fresh = lost.filter((loss) => {
      const flow = observed.flows.get(loss);
      return flow !== undefined && loss.sentMs <= flow.firstReplyMs;
    });
    if (fresh.length < MIN_NEW_QUERIES || fresh.length < MOST * lost.length)
      return excluded(
        'sockets that had been answered also lose queries on the node, or hardly any are lost there',
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
        `${share(lost.length, claims.open.length + lost.length)} lost queries, of ${sockets.size} new sockets, were seen before the translation of ${listed(servers)} and not behind it, from ${clock(fromMs)} to ${clock(toMs)}; ${passed} others were seen on both sides. They were dropped on this node, not at a DNS server.`,
        `During that time, ${busiest.address} opened ${busiest.opened} new sockets to other ports, ${perSecond.toFixed(0)} a second.`,
      ],
      why: 'Each new socket needs an entry in the node’s connection tracking. A pod that opens very many fills the table. The first packet of every new socket is then dropped, including DNS, while sockets that have an entry still work.',
      fix: [
        `Stop or slow down ${busiest.address}: kubectl get pods -A -o wide | grep ${busiest.address}; programs should reuse their connections.`,
        'For now, double the limit (sysctl -w net.netfilter.nf_conntrack_max=…; kube-proxy: conntrack.maxPerCore), and shorten nf_conntrack_udp_timeout.',
        'Use a node-local cache, which keeps DNS out of the table.',
      ],
      prove:
        'on the node: sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; conntrack -S (drop, early_drop); dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while new sockets lose queries; if so, a rule on the node limits new connections (iptables -m connlimit, hashlimit; nft ct count)',
      exchanges: lost,
    };
  },
};
