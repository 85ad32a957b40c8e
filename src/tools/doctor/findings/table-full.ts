/** A full connection tracking table: as the kernel says it, or as sockets show it. */
import { excluded, unknown, type FindingKind, clusterFinding } from './finding.ts';
import { share } from '../texts.ts';
import { upstreams } from '../observe/roles.ts';
import { firstTries } from '../observe/losses.ts';
import { howNewOnesSuffer, sparesKnown } from '../observe/new-socket-losses.ts';
import { MIN_CASES, MIN_QUERIES } from '../thresholds/evidence.ts';
import { SURE_NEW_QUERIES, TABLE_FULL } from '../thresholds/transport.ts';

/** New sockets get nothing, old ones are answered: connection tracking has no place left. */
export const tableFull: FindingKind = {
  code: 'ND3003',
  title: 'New connections are dropped because the connection tracking table is full',
  name: 'a full connection tracking table',
  inCapture(observed, claims) {
    const said = observed.counters.get('tableFull') ?? 0;
    const entries = observed.counters.get('conntrackCount');
    const most = observed.counters.get('conntrackMax');
    const full =
      said > 0 || (entries !== null && most !== null && entries >= TABLE_FULL.entries * most);
    const { fresh, known } = observed.newSockets.meanwhile;
    const spared = sparesKnown(observed);
    const how = howNewOnesSuffer(observed);
    if (!full && how === null)
      return known.asked >= MIN_QUERIES || (entries !== null && most !== null)
        ? excluded(
            spared && fresh.lost > 0
              ? 'sockets that get nothing never get anything, and were opened at all times'
              : fresh.lost === 0
                ? 'queries of new sockets are answered, or the table has room'
                : `of new sockets ${share(fresh.lost, fresh.asked)} queries are lost, of others ${share(known.lost, known.asked)} in the same moments`,
          )
        : unknown(
            'hardly any socket is used on after its first reply while others get lost, and nothing says how full the table is (conntrack -S, dmesg)',
          );
    const losses = claims.open.filter((loss) => {
      const flow = observed.flows.get(loss);
      return flow === undefined || loss.sentMs <= flow.firstReplyMs;
    });
    if (firstTries(losses).length < MIN_CASES || (!full && losses.length < 0.5 * fresh.lost))
      return excluded('nothing is lost, or for another reason');
    claims.take(losses);
    const ups = upstreams(observed);
    const isOutward = !full && losses.every(({ server }) => ups.has(server.address));
    return {
      code: this.code,
      title: isOutward
        ? 'New connections to the upstream are dropped: no entry or no source port is left for them'
        : this.title,
      severity: 'critical',
      confidence: full ? 0.95 : known.asked >= SURE_NEW_QUERIES ? 0.88 : 0.75,
      seen: [
        ...(said > 0
          ? [`The kernel logged "nf_conntrack: table full, dropping packet" ${said} times.`]
          : []),
        ...(entries !== null && most !== null
          ? [`The table has ${entries} entries of ${most}.`]
          : []),
        `${share(fresh.lost, fresh.asked)} queries from sockets that had not been answered yet got no reply at the times when such queries were lost.`,
        ...(known.asked >= MIN_QUERIES
          ? [
              `${known.asked} queries at the same times came from sockets that had been answered before; ${known.lost} were lost.`,
            ]
          : []),
        ...(how === null ? [] : [how]),
      ],
      why:
        'Each socket needs an entry in the node’s connection tracking. When the table is full, the first packet of any new socket is dropped, while sockets that have an entry still work. One pod that opens very many connections can fill it for all.' +
        (isOutward
          ? ' These queries leave the cluster, so their source is translated as well. If the port range for that is small, no port is left for new ones, even with room in the table. A capture on the node tells the two apart.'
          : ''),
      fix: [
        ...(isOutward
          ? [
              'On these DNS pods’ node, check which source ports masquerading may use: iptables-save -t nat | grep -e --to-ports -e --to-source. Widen the range, or remove it.',
            ]
          : []),
        'For now, double the limit: sysctl -w net.netfilter.nf_conntrack_max=… (kube-proxy: conntrack.maxPerCore).',
        'Determine who fills the table: conntrack -L | awk for the source with the most entries; often a program without connection reuse, or DNS itself with ndots:5.',
        'Use a node-local cache, which keeps DNS out of the table.',
        'Firewalls and hypervisors have such tables too, which the node does not count. On AWS, check ethtool -S eth0 | grep conntrack_allowance_exceeded.',
      ],
      prove:
        'on the node: sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while new sockets get lost, on the client’s node and on the DNS pods’ nodes',
      exchanges: losses,
    };
  },
  inCluster({ kernel }) {
    if (kernel === null) return unknown('the nodes’ connection tracking cannot be read from here');
    const [before, after] = kernel;
    const dropped = after.drop - before.drop;
    const share = after.max === 0 ? 0 : after.count / after.max;
    if (share < TABLE_FULL.nearly && !(dropped > 0 && share > TABLE_FULL.dropped))
      return excluded(`on this machine ${after.count} of ${after.max} entries are taken`);
    return clusterFinding(this, {
      severity: 'critical',
      confidence: dropped > 0 ? 0.95 : 0.75,
      seen: [
        `${after.count} of ${after.max} entries of this machine’s connection tracking are in use.`,
        ...(dropped > 0 ? [`${dropped} packets were dropped during this time.`] : []),
      ],
      affected: ['this machine, and all pods on it'],
      why: 'A query from a new port needs a new entry, and is dropped if none is free. Established connections continue, which is why it looks like a DNS fault.',
      fix: [
        'Raise the limit: sysctl net.netfilter.nf_conntrack_max (kube-proxy: conntrack.maxPerCore).',
        "Determine who fills it: conntrack -L | awk '{print $5}' | sort | uniq -c | sort -n | tail",
      ],
      prove: 'dmesg | grep "table full", and conntrack -S twice',
      disproved: 'the kernel logs no such message, and drop does not rise',
    });
  },
};
