/** TCP connections to a name server that something in between forgets while they are idle. */
import { takeSilence } from '../observe/consequences.ts';
import { keysOf, listed, share, took } from '../texts.ts';
import { MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { MIN_IDLE_MS } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const idleConnections: FindingKind = {
  code: 'ND3045',
  title: 'Idle TCP connections to a name server are dropped, and queries on them are lost',
  name: 'idle TCP connections that are dropped',
  inCapture(observed, claims) {
    const { lost, answered, fresh } = observed.connections.reused;
    if (lost.length + answered.length === 0)
      return unknown('no TCP connection to a name server was used twice');
    const open = new Set(claims.open);
    const hit = lost.filter(({ idleMs, exchange }) => idleMs >= MIN_IDLE_MS && open.has(exchange));
    const leastMs = Math.min(...hit.map(({ idleMs }) => idleMs));
    const spared = answered.filter((idleMs) => idleMs >= leastMs).length;
    const quick = answered.length - spared + fresh;
    if (
      hit.length < MIN_CASES ||
      hit.length < MOST * (hit.length + spared) ||
      hit.length < MOST * lost.length ||
      quick < MIN_CASES
    )
      return excluded(
        `${share(lost.length, lost.length + answered.length)} queries on TCP connections with earlier replies got none`,
      );
    const exchanges = hit.map(({ exchange }) => exchange);
    takeSilence(observed, claims, exchanges);
    const servers = keysOf(exchanges, ({ server }) => server.address);
    const clients = keysOf(exchanges, ({ client }) => client.address);
    const mostMs = Math.max(...hit.map(({ idleMs }) => idleMs));
    const untranslated = hit.filter(({ exchange, before }) => exchange.server.address !== before);
    return {
      severity: 'critical',
      confidence: untranslated.length > 0 ? 0.95 : 0.9,
      seen: [
        `${share(hit.length, hit.length + spared)} queries from ${listed(clients)} to ${listed(servers)} on TCP connections that had been idle for ${took(leastMs)}${took(mostMs) === took(leastMs) ? '' : ` to ${took(mostMs)}`} got no reply. During the same time, ${quick} queries on new or busy connections were answered.`,
        untranslated.length > 0 &&
          `The same connections had been answered by ${listed(keysOf(untranslated, ({ before }) => before))} before. After the pause, the packets went to ${listed(servers)} untranslated, so the node’s connection tracking had forgotten these connections.`,
        `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
      ],
      why: `${listed(clients)} keeps its TCP connections open and reuses them. Something on the way (the node’s connection tracking, a firewall, a load balancer) forgets a connection that is idle for about ${took(leastMs)} and then silently drops its packets. The sender repeats them for seconds before it opens a new connection, and every query in between waits.`,
      fix: [
        `Raise the idle timeout on the way to ${listed(servers)}: nf_conntrack_tcp_timeout_established on the node (sysctl), or the idle timeout of the firewall or load balancer.`,
        'Or make the forwarder close idle connections earlier than that (expire in the forward plugin of CoreDNS and the node-local cache, tcp-idle-timeout in others).',
        'Or forward over UDP, without force_tcp.',
      ],
      prove: `on the node: sysctl net.netfilter.nf_conntrack_tcp_timeout_established; conntrack -L -p tcp --dport 53 no longer lists a connection that ss -tn still shows`,
      disproved: 'queries on connections that were idle for as long are answered',
      exchanges,
    };
  },
};
