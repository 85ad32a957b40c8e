/** Masquerading with too few source ports. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { narrowTranslations } from '../observe/translated-ports.ts';
import { PORTS_GONE_LOST } from '../thresholds/transport.ts';

/** Queries do not leave the node, and all that do have one of a few source ports. */
export const noPortsLeft: FindingKind = {
  code: 'ND3024',
  title: 'The node has no source port left to translate queries to: they are dropped there',
  name: 'too few source ports for masquerading',
  inCapture(observed, claims) {
    const narrow = narrowTranslations(observed);
    if (narrow.length === 0)
      return unknown('no source address translation was seen, or it has many ports');
    const found = narrow.flatMap((range) => {
      const losses = claims
        .openTo(range.server)
        .filter(({ client }) => client.address !== range.address);
      return losses.length >= PORTS_GONE_LOST ? { range, losses } : [];
    });
    const [first] = found;
    if (first === undefined) return excluded('queries leave the node translated');
    const { range, losses } = first;
    const { server } = range;
    claims.take(losses);
    const clients = [...new Set(losses.map(({ client }) => client.address))];
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: 0.92,
      seen: [
        `All ${range.queries} queries to ${server} that left as ${range.address} had one of ${range.ports} source ports, ${range.least} to ${range.most}.`,
        `${share(losses.length, losses.length + range.queries)} queries from ${listed(clients)} to ${server} got no reply; those that were translated did.`,
      ],
      why: 'Masquerading gives each query to one server a source port of its own for as long as connection tracking remembers it (30 s for UDP). With a range this small, all ports are in use as soon as the server slows down or load rises, and the node drops further queries. The connection tracking table is not full: a higher nf_conntrack_max does not help.',
      fix: [
        'Find the rule with the port range, and remove or widen it: iptables-save -t nat | grep -e --to-ports -e --to-source (nft list ruleset | grep masquerade); network plugins have an option for it (CNI portmap, ip-masq-agent, Calico natPortRange).',
        'Send fewer queries that need a port: cache longer in the Corefile, or set force_tcp in forward, which uses few connections.',
        'Free ports sooner: lower the sysctl net.netfilter.nf_conntrack_udp_timeout.',
      ],
      prove: `on the node: conntrack -L -p udp --orig-dst ${server} | wc -l reaches ${range.ports}, and conntrack -S counts drops`,
      disproved: `queries to ${server} leave the node with other source ports`,
      exchanges: losses,
    };
  },
};
