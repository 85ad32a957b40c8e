import { excluded, share, unknown, type Rule } from './finding.ts';
import { firstTries } from './losses.ts';

/** New sockets get nothing, old ones are answered: connection tracking has no place left. */
export const tableFull: Rule = {
  code: 'ND3003',
  title: 'New connections are dropped: the connection tracking table is full',
  name: 'a full connection tracking table',
  check(observed, claims) {
    const said = observed.counters.get('tableFull') ?? 0;
    const entries = observed.counters.get('conntrackCount');
    const most = observed.counters.get('conntrackMax');
    const full = said > 0 || (entries !== null && most !== null && entries >= 0.98 * most);
    const open = claims.open;
    const flows = observed.flows.list;
    const kept = flows.filter(
      ({ asked, lastAnsweredMs }) => asked >= 4 && lastAnsweredMs > -Infinity,
    );
    const keptAsked = kept.reduce((sum, flow) => sum + flow.asked, 0);
    const keptLost = kept.reduce((sum, flow) => sum + flow.lost, 0);
    const isDead = ({ lastAnsweredMs }: (typeof flows)[number]): boolean =>
      lastAnsweredMs === -Infinity;
    const fresh = flows.filter((flow) => flow.asked < 4 || isDead(flow));
    const dead = fresh.filter(isDead);
    const shows =
      keptAsked >= 20 &&
      keptLost <= 0.01 * keptAsked &&
      dead.length >= 5 &&
      dead.length >= 0.08 * fresh.length;
    if (!full && !shows)
      return keptAsked >= 20 || (entries !== null && most !== null)
        ? excluded('new sockets are answered like old ones, or the table has room')
        : unknown(
            'no client keeps a socket, and nothing says how full the table is (conntrack -S, dmesg)',
          );
    const losses = open.filter(({ client, server }) => {
      const flow = observed.flows.get(`${client.address} ${client.port} ${server.address}`);
      return flow === undefined || !kept.includes(flow);
    });
    if (firstTries(losses).length < 3) return excluded('nothing is lost');
    claims.take(losses);
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: full ? 0.95 : 0.75,
      seen: [
        ...(said > 0
          ? [`The kernel says ${said} times: nf_conntrack: table full, dropping packet.`]
          : []),
        ...(entries !== null && most !== null
          ? [`The table has ${entries} entries of ${most}.`]
          : []),
        `${share(dead.length, fresh.length)} new sockets got no reply.`,
        ...(keptAsked >= 20
          ? [`${keptAsked} queries from sockets that had been answered before: ${keptLost} lost.`]
          : []),
      ],
      why: 'Each socket needs an entry in the node’s connection tracking. When the table is full the first packet of a new one is dropped, whatever it is, while those that have an entry go on. One pod that opens very many connections can fill it for all.',
      fix: [
        'Now: sysctl -w net.netfilter.nf_conntrack_max=…, twice what it is (kube-proxy: conntrack.maxPerCore).',
        'Find who fills it: conntrack -L | awk for the source with the most entries; often a program without connection reuse, or DNS itself with ndots:5.',
        'A node-local cache keeps DNS out of the table.',
      ],
      prove:
        'on the node: sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while new sockets get lost, on the client’s node and on the DNS pods’ nodes',
      exchanges: losses,
    };
  },
};
