/** Masquerading with too few source ports. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { narrowTranslations } from '../observe/translated-ports.ts';
import { PORTS_GONE_LOST } from '../thresholds/transport.ts';

/** Queries do not leave the node, and those that do use only a few source ports. */
export const noPortsLeft: FindingKind = {
  code: 'ND3024',
  title: 'The node drops queries because masquerading has run out of source ports',
  name: 'masquerading with too few source ports',
  inCapture(observed, claims) {
    const narrow = narrowTranslations(observed);
    if (narrow.length === 0)
      return unknown('no source address translation was seen, or it uses many ports');
    const found = narrow.flatMap((range) => {
      const losses = claims
        .openOrFlooded(range.server)
        .filter(({ client }) => client.address !== range.address);
      return losses.length >= PORTS_GONE_LOST ? { range, losses } : [];
    });
    const [first] = found;
    if (first === undefined) return excluded('queries leave the node after translation');
    const { range, losses } = first;
    const { server } = range;
    claims.take(losses);
    const clients = [...new Set(losses.map(({ client }) => client.address))];
    return {
      severity: 'critical',
      confidence: 0.92,
      seen: [
        `All ${range.queries} queries to ${server} that left as ${range.address} used one of only ${range.ports} source ports (${range.least} to ${range.most}).`,
        `${share(losses.length, losses.length + range.queries)} queries from ${listed(clients)} to ${server} got no reply, while those that were translated did.`,
      ],
      why: 'Masquerading gives each query to a server a separate source port for as long as connection tracking remembers it (30 s for UDP). If the range is this small, all ports are in use as soon as the server slows down or the load rises. The node then drops further queries. The connection tracking table is not full, so a higher nf_conntrack_max does not help.',
      fix: [
        'Find the rule that sets the port range (iptables-save -t nat | grep -e --to-ports -e --to-source, or nft list ruleset | grep masquerade), and remove or widen it. Network plugins may set it (CNI portmap, ip-masq-agent, Calico natPortRange).',
        'Send fewer queries that need a port. Cache longer in the Corefile, or set force_tcp in forward, which uses few connections.',
        'To free ports sooner, lower the sysctl net.netfilter.nf_conntrack_udp_timeout.',
      ],
      prove: `on the node, conntrack -L -p udp --orig-dst ${server} | wc -l reaches ${range.ports}, and conntrack -S counts drops`,
      disproved: `queries to ${server} leave the node with other source ports`,
      exchanges: losses,
    };
  },
};
