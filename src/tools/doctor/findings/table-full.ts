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
  title: 'New connections are dropped: the connection tracking table is full',
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
              ? 'sockets that get nothing get nothing for as long as they live, and are of all times'
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
          ? [`The kernel says ${said} times: nf_conntrack: table full, dropping packet.`]
          : []),
        ...(entries !== null && most !== null
          ? [`The table has ${entries} entries of ${most}.`]
          : []),
        `${share(fresh.lost, fresh.asked)} queries from sockets that had not been answered yet got no reply, in the moments in which such were lost.`,
        ...(known.asked >= MIN_QUERIES
          ? [
              `${known.asked} queries of the same moments, from sockets that had been answered before: ${known.lost} lost.`,
            ]
          : []),
        ...(how === null ? [] : [how]),
      ],
      why:
        'Each socket needs an entry in the node’s connection tracking. When the table is full the first packet of a new one is dropped, whatever it is, while those that have an entry go on. One pod that opens very many connections can fill it for all.' +
        (isOutward
          ? ' These queries leave the cluster, so their source is translated as well: where the range of ports for that is small, no port is left for new ones, with room in the table. A capture on the node tells the two apart.'
          : ''),
      fix: [
        ...(isOutward
          ? [
              'See on the node of these DNS pods which source ports masquerading may use: iptables-save -t nat | grep -e --to-ports -e --to-source; make the range wide, or remove it.',
            ]
          : []),
        'Now: sysctl -w net.netfilter.nf_conntrack_max=…, twice what it is (kube-proxy: conntrack.maxPerCore).',
        'Find who fills it: conntrack -L | awk for the source with the most entries; often a program without connection reuse, or DNS itself with ndots:5.',
        'Use a node-local cache, which keeps DNS out of the table.',
        'Firewalls and hypervisors have such tables, too, and no counter on the node: ethtool -S eth0 | grep conntrack_allowance_exceeded (AWS).',
      ],
      prove:
        'on the node: sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max; dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while new sockets get lost, on the client’s node and on the DNS pods’ nodes',
      exchanges: losses,
    };
  },
  inCluster({ kernel }) {
    if (kernel === null)
      return unknown('the connection tracking of nodes cannot be read from here');
    const [before, after] = kernel;
    const dropped = after.drop - before.drop;
    const share = after.max === 0 ? 0 : after.count / after.max;
    if (share < TABLE_FULL.nearly && !(dropped > 0 && share > TABLE_FULL.dropped))
      return excluded(`on this machine ${after.count} of ${after.max} entries are taken`);
    return clusterFinding(this, {
      severity: 'critical',
      confidence: dropped > 0 ? 0.95 : 0.75,
      seen: [
        `${after.count} of ${after.max} entries of this machine’s connection tracking are taken.`,
        ...(dropped > 0 ? [`${dropped} packets were dropped in this time.`] : []),
      ],
      affected: ['this machine, and all pods on it'],
      why: 'A query from a new port needs a new entry; without a free one, it is dropped. Established connections continue, which is why it looks like DNS.',
      fix: [
        'Raise it: sysctl net.netfilter.nf_conntrack_max (kube-proxy: conntrack.maxPerCore).',
        "See who fills it: conntrack -L | awk '{print $5}' | sort | uniq -c | sort -n | tail",
      ],
      prove: 'dmesg | grep "table full", and conntrack -S twice',
      disproved: 'the kernel logs no such message, and drop does not rise',
    });
  },
};
