/** A full connection tracking table: as the kernel says it, or as sockets show it. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { share } from '../texts.ts';
import { upstreams } from '../observe/roles.ts';
import { firstTries } from '../observe/losses.ts';
import { howNewOnesSuffer, sparesKnown } from '../observe/new-socket-losses.ts';
import { MIN_CASES, MIN_QUERIES } from '../thresholds/evidence.ts';
import { SURE_NEW_QUERIES, TABLE_FULL } from '../thresholds/transport.ts';

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
              ? 'the sockets without replies never get any, and were opened at all times'
              : fresh.lost === 0
                ? 'queries from new sockets are answered, or the table has room'
                : `${share(fresh.lost, fresh.asked)} queries from new sockets are lost, compared with ${share(known.lost, known.asked)} from others at the same times`,
          )
        : unknown(
            'hardly any socket is used after its first reply while queries are lost, and the input does not show how full the table is (conntrack -S, dmesg)',
          );
    const losses = claims.open.filter((loss) => {
      const flow = observed.flows.get(loss);
      return flow === undefined || loss.sentMs <= flow.firstReplyMs;
    });
    if (firstTries(losses).length < MIN_CASES || (!full && losses.length < 0.5 * fresh.lost))
      return excluded('no queries are lost, or another finding explains the losses');
    claims.take(losses);
    const ups = upstreams(observed);
    const isOutward = !full && losses.every(({ server }) => ups.has(server.address));
    return {
      title: isOutward
        ? 'New connections to the upstream are dropped because no entry or source port is left'
        : this.title,
      severity: 'critical',
      confidence: full ? 0.95 : known.asked >= SURE_NEW_QUERIES ? 0.88 : 0.75,
      seen: [
        said > 0 && `The kernel logged "nf_conntrack: table full, dropping packet" ${said} times.`,
        entries !== null && most !== null && `The table has ${entries} entries of ${most}.`,
        `${share(fresh.lost, fresh.asked)} queries from sockets that had not been answered yet got no reply in the periods with losses.`,
        known.asked >= MIN_QUERIES &&
          `${known.asked} queries at the same times came from sockets that had been answered before, and ${known.lost} of them were lost.`,
        how !== null && how,
      ],
      why:
        'Each socket needs an entry in the node’s connection tracking. When the table is full, the first packet of any new socket is dropped, while sockets that have an entry still work. One pod that opens very many connections can fill the table for all.' +
        (isOutward
          ? ' These queries leave the cluster, so their source address is also translated. If the port range for masquerading is small, it can run out even though the table has room. A capture on the node shows which it is.'
          : ''),
      fix: [
        isOutward &&
          'On these DNS pods’ node, check which source ports masquerading may use (iptables-save -t nat | grep -e --to-ports -e --to-source), and widen or remove the range.',
        'For now, double the limit (sysctl net.netfilter.nf_conntrack_max, or conntrack.maxPerCore in kube-proxy).',
        'In conntrack -L, find the source with the most entries. It is often a program that does not reuse connections, or DNS itself with ndots:5.',
        'Use a node-local cache, which keeps DNS out of the table.',
        'Also check firewalls and hypervisors, which have their own tables. On AWS, run ethtool -S eth0 | grep conntrack_allowance_exceeded.',
      ],
      prove:
        'on the node, run sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max, and dmesg | grep "table full"',
      disproved:
        'the count is far below the maximum while queries from new sockets are lost, on the client’s node and on the DNS pods’ nodes',
      exchanges: losses,
    };
  },
  inCluster({ kernel }) {
    if (kernel === null) return unknown('the nodes’ connection tracking cannot be read from here');
    const [before, after] = kernel;
    const dropped = after.drop - before.drop;
    const share = after.max === 0 ? 0 : after.count / after.max;
    if (share < TABLE_FULL.nearly && !(dropped > 0 && share > TABLE_FULL.dropped))
      return excluded(`${after.count} of ${after.max} entries are in use on this machine`);
    return {
      severity: 'critical',
      confidence: dropped > 0 ? 0.95 : 0.75,
      seen: [
        `${after.count} of ${after.max} entries of this machine’s connection tracking are in use.`,
        dropped > 0 && `${dropped} packets were dropped during this time.`,
      ],
      affected: ['this machine, and all pods on it'],
      why: 'A query from a new port needs a new entry and is dropped if none is free. Established connections continue, so it looks like a DNS fault.',
      fix: [
        'Raise the limit (sysctl net.netfilter.nf_conntrack_max, or conntrack.maxPerCore in kube-proxy).',
        "Determine who fills it: conntrack -L | awk '{print $5}' | sort | uniq -c | sort -n | tail",
      ],
      prove: 'run dmesg | grep "table full", and compare two runs of conntrack -S',
      disproved: 'the kernel logs no such message, and drop does not rise',
    };
  },
};
