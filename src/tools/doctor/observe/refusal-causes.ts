/** The reasons that servers refuse queries, as ND4010 reports them. */
import type { Failure, Observations } from './observations.ts';
import { proxyText, type RefusalRule } from './refusal-rule.ts';
import type { Refusers } from './refusers.ts';
import { stubText } from './stub-zone.ts';
import { keysOf, listed } from '../texts.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';
import type { ServerView } from './server-view.ts';

export interface RefusalCause {
  readonly seen: readonly string[];
  readonly why: string;
  readonly fix: readonly string[];
  readonly title?: string;
  readonly confidence?: number;
  readonly disproved?: string;
}

export const ACCEPT_PODS =
  'Make that upstream accept the address of the DNS pod, or of its node after masquerading (allow-query, allow-recursion, access-control).';

/** The causes, by the property that decides about a refusal. */
export const refusalCauses = {
  byClient: (): RefusalCause => ({
    seen: [],
    why: 'The server restricts its clients with acl in a Corefile, or with allow-query or access-control in other servers. The source address of the arriving packet decides (the pod’s or, after masquerading, the node’s).',
    fix: [
      'In the Corefile’s acl (or its equivalent upstream), allow the pods’ prefixes.',
      'If only some nodes are affected, compare the source addresses that the server sees (masquerading).',
    ],
    disproved: 'the same client is answered for another name',
    confidence: 0.92,
  }),
  all: (server: string): RefusalCause => ({
    title: 'A name server refuses every query from its clients in this capture',
    seen: [],
    why: 'A server that refuses every query, whatever its name, most likely has an access rule that does not allow these clients: acl in a Corefile, or allow-query or access-control in other servers. The source address of the arriving packet decides (the pod’s or, after masquerading, the node’s). New node pools and new pod ranges are often missing there. Otherwise, the server is only authoritative and has none of these zones.',
    fix: [
      `On ${server}, allow the addresses of these clients (in the Corefile’s acl, or in allow-query, allow-recursion or access-control).`,
      'If clients with other addresses are answered for the same names, the rule is the cause. Otherwise, add a server block or a forward for these names.',
    ],
    disproved: 'a client with another address is also refused for the same name',
    confidence: 0.88,
  }),
  stub: (stub: string, server: string, own: readonly Failure[]): RefusalCause => ({
    title: `The server that names in ${stub.slice(0, -1)} are forwarded to refuses them`,
    seen: [stubText(stub, server)],
    why: `The cluster’s DNS forwards ${stub.slice(0, -1)} to ${server}, which refuses the queries. Its access list lacks the address of the DNS pods or, after masquerading, of their nodes, or it does not serve this zone. Pods get REFUSED for these names, and other names are not affected.`,
    fix: [
      `On ${server}, allow ${listed(keysOf(own, ({ client }) => client.address))} (allow-query, allow-recursion, access-control, the acl of the zone).`,
      `Check that ${server} serves ${stub.slice(0, -1)}, and that the address in the Corefile is right (stubDomains, a server block with forward).`,
    ],
    disproved: `${server} answers the same query from the DNS pod’s node`,
    confidence: 0.88,
  }),
  rule: (observed: Observations, rule: RefusalRule): RefusalCause => ({
    ...(rule.denied.length === 0
      ? {}
      : {
          title: 'A rule refuses certain names to some clients, while others can resolve them',
        }),
    seen: [rule.seen, ...proxyText(observed, rule)],
    why: 'A rule refuses these names to this client. It may be in a DNS proxy on the node or beside the pod that allows only listed names (an egress policy with DNS rules, such as toFQDNs), or in a view or acl on the server. A resolver stops at REFUSED, and the search-path names that come first are also refused, so even listed names are not reached.',
    fix: [
      'Find the policy with DNS rules that selects these pods. Make it allow each name with every search domain appended (a pattern such as *.svc.cluster.local), or answer NXDOMAIN instead of REFUSED.',
      'Until then, write listed names with a trailing dot, which skips the search path.',
    ],
    disproved:
      'the same client is answered for the same name at another time, and no policy has DNS rules',
    confidence: 0.92,
  }),
  alone: (server: string, alone: readonly string[]): RefusalCause => ({
    title: 'One of the name servers that clients use refuses every query',
    seen: [
      `${server} refuses (nearly) every query, while ${listed(alone)}, which the same clients also query, ${alone.length === 1 ? 'refuses' : 'refuse'} none.`,
    ],
    why: `resolv.conf lists ${server} beside ${listed(alone)}, but the former does not resolve names for these pods. If options rotate is set, or another server is late, a lookup gets REFUSED first.`,
    fix: [
      `Remove ${server} from these pods’ resolv.conf (dnsConfig, or kubelet --resolv-conf), or make it answer them.`,
    ],
    confidence: 0.92,
  }),
  zone: (zone: string, name: string): RefusalCause => ({
    title: 'A name server refuses the names in one zone',
    seen: [`All refused names are in ${zone}, while other external names are answered.`],
    why: `The servers for ${zone} refuse its names. The delegation leads to servers that do not have the zone (lame delegation), a rule upstream blocks it, or its server block forwards to a server that does not serve it.`,
    fix: [
      `Find the zone’s own servers with ndots query ${zone} NS, and query ${name} at each. Those that answer REFUSED do not serve the zone, and its owner has to correct the delegation.`,
      `If the zone is internal, add a server block for ${zone} that forwards to a server that has the zone.`,
    ],
  }),
  someClients: (server: string, clients: Refusers): RefusalCause => ({
    seen: [
      `${server} refuses queries for these names from ${listed(clients.refusing)} but answers them for ${listed(clients.answering)}, so the refusals depend on the client.`,
    ],
    why: 'The upstream restricts its clients (acl, allow-query, allow-recursion, access-control), and its list lacks the address of this DNS pod or its node. Pods get REFUSED whenever a query goes to that DNS pod.',
    fix: [ACCEPT_PODS],
    confidence: 0.92,
  }),
  upstreams: (servers: readonly ServerView[]): RefusalCause => {
    const refusing = listed(servers.map(({ address }) => address));
    const pods = listed([...new Set(servers.flatMap(({ clients }) => [...clients]))]);
    const isAll = servers.every(
      ({ outcomes: { refused, asked, lost } }) => refused >= NEARLY_ALL * (asked - lost),
    );
    return {
      ...(isAll && {
        title: `The ${servers.length === 1 ? 'upstream' : 'upstreams'} of a DNS pod ${servers.length === 1 ? 'refuses' : 'refuse'} all its queries`,
      }),
      seen: isAll
        ? [`${refusing} refused every query from ${pods}, whatever the name.`]
        : [`${refusing} refused them, as upstreams of ${pods}.`],
      why: `${isAll ? 'An access list upstream (allow-query, allow-recursion, access-control) most likely lacks the address of this DNS pod or its node. Otherwise, the upstreams are only authoritative for their own zones.' : 'The upstream does not resolve names for the DNS pods. Either it is only authoritative for its own zones, or its access list (allow-recursion, access-control) lacks their source addresses.'} If other DNS pods are served, clients fail only when their query goes to this one.`,
      fix: [
        `Make ${refusing} answer recursive queries from ${pods} (or from their nodes, after masquerading), or forward to other servers.`,
        'To see whether the address decides, send the same query from a node with another DNS pod.',
      ],
    };
  },
  somePods: (pods: Refusers): RefusalCause => ({
    seen: [
      `${listed(pods.refusing)} ${pods.refusing.length === 1 ? 'refuses' : 'refuse'} every query for these names, while ${listed(pods.answering)}, behind the same address, ${pods.answering.length === 1 ? 'answers' : 'answer'} them.`,
    ],
    why: `The upstream refuses queries from ${listed(pods.refusing)}, because its access list lacks the address of this DNS pod or its node. Or this DNS pod’s configuration differs from the others’ (an acl, a missing forward).`,
    fix: ['Query each upstream from this DNS pod’s node.', ACCEPT_PODS],
    confidence: 0.92,
  }),
};
