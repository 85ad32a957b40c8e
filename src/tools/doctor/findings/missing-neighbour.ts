/** Addresses that no host on the link answers for. */
import type { Observations } from '../observe/observations.ts';
import type { ServerView } from '../observe/server-view.ts';
import { choices } from '../observe/dead-names.ts';
import { excluded, unknown, type Finding, type FindingKind, type Verdict } from './finding.ts';
import { listed } from '../texts.ts';
import { MAX_CHANCE, MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { NEIGHBOUR_REPORT_MS } from '../thresholds/transport.ts';

/** No host on the local network has the server’s address. */
export const missingNeighbour: FindingKind = {
  code: 'ND3015',
  title: 'Packets are not even sent: no host on the local network has the next address',
  name: 'a neighbour that is gone, or a full neighbour table',
  inCapture(observed, claims) {
    const overflow = observed.counters.get('neighbourOverflow') ?? 0;
    const alone = observed.servers.list.flatMap((server) => {
      const { address } = server;
      const neighbour = observed.neighbours.list.find((each) => each.address === address);
      const asked = neighbour?.longest ?? 0;
      const icmp =
        (observed.unreachable.get(address)?.noNeighbour ?? 0) + unquotedOf(observed, address);
      if (asked < MIN_CASES && icmp < MIN_CASES) return [];
      // If this address answers other clients at the time, several servers share it and one is
      // gone: no neighbour is missing.
      return isAway(server) ? [{ address, asked, icmp }] : [];
    });
    const unsent = alone.length === 0 && overflow === 0 ? notFound(observed) : null;
    if (unsent !== null) return { code: this.code, title: this.title, ...unsent };
    if (alone.length === 0 && overflow === 0)
      return observed.neighbours.size === 0
        ? unknown('the capture has no ARP packets, and no router reports a missing address')
        : unanswered(observed);
    const servers = [...new Map(alone.map((each) => [each.address, each])).values()];
    const addresses = servers.map(({ address }) => address);
    const losses = addresses.flatMap((address) => claims.openTo(address));
    if (losses.length < MIN_CASES && overflow === 0)
      return excluded(
        'no query was lost for the addresses that no host answered for on the local network',
      );
    claims.take(losses);
    // Several servers share the address of a Service: the missing neighbour is the one that is
    // gone.
    const gone = observed.neighbours.list
      .filter(
        ({ address, unanswered }) =>
          unanswered >= MIN_CASES && !addresses.includes(address) && isLikely(address, addresses),
      )
      .toSorted((one, other) => other.longest - one.longest);
    const missing = [
      ...gone.map(({ address }) => address),
      ...servers.flatMap(({ address, asked }) => (asked > 0 || gone.length === 0 ? address : [])),
    ];
    const [first = 'ADDRESS'] = missing;
    // The capture shows no pod behind the address, and no request for one.
    const [only] = servers;
    const isUntranslated =
      servers.length === 1 &&
      only!.asked === 0 &&
      gone.length === 0 &&
      observed.backends.size === 0 &&
      isOfCluster(observed, only!.address);
    return {
      code: this.code,
      title: isUntranslated
        ? 'A router knows no host with the address of the DNS service: the node did not translate it'
        : this.title,
      severity: 'critical',
      confidence: overflow > 0 ? 0.95 : 0.85,
      seen: [
        ...gone
          .slice(0, 3)
          .map(
            ({ address, longest }) =>
              `${address}: requested on the local network (ARP, neighbour discovery) ${times(longest)}, but no host answered.`,
          ),
        ...(addresses.length > 0
          ? servers
              .slice(0, 3)
              .map(
                ({ address, asked, icmp }) =>
                  `${address}: ${[
                    ...(asked > 0
                      ? [
                          `requested on the local network (ARP, neighbour discovery) ${times(asked)}, without an answer`,
                        ]
                      : []),
                    ...(icmp > 0
                      ? [
                          gone.length > 0
                            ? `packets to it came back ${times(icmp)}: no host has the translated address (ICMP host or address unreachable)`
                            : `a router reported ${times(icmp)} that no host on its link has the address, or the translated one (ICMP host or address unreachable)`,
                        ]
                      : []),
                  ].join('; ')}.`,
              )
          : []),
        ...(overflow > 0
          ? [`The kernel reported ${overflow} times that its neighbour table overflows.`]
          : []),
      ],
      why: isUntranslated
        ? `Packets to ${first} reach a router that knows no host with that address. If that is the address of the DNS Service, the node did not translate it to a pod: the rules of kube-proxy (or its replacement) are missing there. Otherwise the pod behind it is gone.`
        : 'Before a packet leaves on a local network, its sender has to know the next host’s hardware address. The host is gone, or the kernel’s neighbour table is full (many pods in one flat network) and loses entries as fast as it learns them.',
      fix: [
        ...(isUntranslated
          ? [
              `On these clients’ node, check whether kube-proxy runs and has rules for ${first} (iptables-save, ipvsadm -ln or nft list ruleset, with grep ${first}).`,
            ]
          : []),
        ...(overflow > 0 ? [enlarge, find(first)] : [find(first), enlarge]),
      ],
      prove: `ip neigh show ${first}; arping ${first} (ndisc6 for IPv6); ip neigh | wc -l; dmesg | grep -i "neighbo.r.*overflow"`,
      disproved: `ip neigh shows ${first} as REACHABLE while queries are lost`,
      exchanges: losses,
    };
  },
};

/** True if the server is asked for names of the cluster. */
function isOfCluster({ names, domains }: Observations, address: string): boolean {
  return names.list.some(({ name, servers }) => domains.isOfCluster(name) && servers.has(address));
}

/**
 * ICMP errors without the missing address (the capture cuts it off) that belong to this server:
 * sent to clients that lose queries to it, and to no others, at that time.
 */
function unquotedOf({ unquoted, losses }: Observations, address: string): number {
  if (unquoted.length === 0) return 0;
  const [own, others] = [new Map<string, number[]>(), new Set<string>()];
  for (const { client, server, sentMs } of losses) {
    if (server.address !== address) others.add(client.address);
    else if (!own.has(client.address)) own.set(client.address, [sentMs, sentMs]);
    else own.get(client.address)![1] = Math.max(own.get(client.address)![1]!, sentMs);
  }
  return unquoted.filter(({ timeMs, client }) => {
    const [fromMs = Infinity, toMs = 0] = own.get(client) ?? [];
    return !others.has(client) && timeMs >= fromMs && timeMs <= toMs + NEIGHBOUR_REPORT_MS;
  }).length;
}

/**
 * True if packets to these may be translated to it: same family, and not a link-local address, with
 * which a host checks that it may use it (RFC 4862).
 */
function isLikely(address: string, servers: readonly string[]): boolean {
  return (
    !address.startsWith('fe80:') &&
    servers.some((server) => server.includes(':') === address.includes(':'))
  );
}

/**
 * A name server that gets no query because it is not found: lookups begin when the kernel has given
 * it up. Null: there is none.
 */
function notFound(observed: Observations): Omit<Finding, 'code' | 'title'> | null {
  const all = Map.groupBy(observed.wantedNeighbours.list, ({ address }) => address);
  for (const { address, asked, answered } of observed.neighbours.list) {
    const wanted = all.get(address) ?? [];
    // An address that gets queries was found, or is lost to more than a few clients.
    if (asked < MIN_CASES || answered > 0 || observed.servers.get(address) !== undefined) continue;
    // Others that look for the address want something else there.
    if (wanted.some(({ asker }) => observed.clients.get(asker) === undefined)) continue;
    const late = wanted.reduce((sum, each) => sum + each.late, 0);
    const lookups = wanted.reduce((sum, each) => sum + each.late + each.otherwise, 0);
    if (late < MIN_CASES || late < MOST * lookups) continue;
    const chance = wanted.reduce((sum, each) => sum + each.late * Math.log(each.chance), 0);
    if (Math.exp(choices(lookups, late) + chance) > MAX_CHANCE) continue;
    const askers = new Set(wanted.map(({ asker }) => asker));
    return {
      severity: 'warning',
      confidence: 0.6,
      seen: [
        `${address}: requested on the local network (ARP, neighbour discovery) ${times(asked)}, but no host answered.`,
        `${late} of ${lookups} lookups of the ${askers.size === 1 ? 'client that asks' : `${askers.size} clients that ask`} for it start a second after such a request has failed. No query goes there, so none is lost.`,
      ],
      why: `The timing suggests that ${address} is the clients’ first name server. Before a query leaves, its sender has to know the next host’s hardware address. For up to three seconds no host answers, the query is dropped on its own host, and the program tries its next name server.`,
      fix: [
        `Remove ${address} from the clients’ resolv.conf (nameserver lines; kubelet’s clusterDNS, dnsConfig), or restore its host.`,
        find(address),
      ],
      prove: `cat /etc/resolv.conf in a client; ip neigh show ${address} shows FAILED or INCOMPLETE; ndots query NAME @${address}`,
      disproved: `${address} is in none of the clients’ resolv.conf files, and something else on them uses it`,
      exchanges: observed.begunLate.filter(({ client }) => askers.has(client.address)),
    };
  }
  return null;
}

const enlarge =
  'If the kernel says that the table overflows, run sysctl -w net.ipv4.neigh.default.gc_thresh1=8192 gc_thresh2=32768 gc_thresh3=65536 on the nodes.';

function find(address: string): string {
  return `Check whether the host or pod with ${address} still exists (kubectl get nodes,pods -A -o wide | grep ${address}), and why it is still an endpoint or the next hop of a route (ip route get ${address}).`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** True if (nearly) nothing is answered from the first to the last second with losses. */
function isAway({ history }: ServerView): boolean {
  const lossy = history.filter(([, { lost }]) => lost > 0);
  const [from, to] = [lossy[0]?.[0] ?? 0, lossy.at(-1)?.[0] ?? 0];
  const within = history.filter(([second]) => second > from && second <= to);
  const asked = within.reduce((sum, [, second]) => sum + second.asked, 0);
  const lost = within.reduce((sum, [, second]) => sum + second.lost, 0);
  return lost >= MOST * asked;
}

/**
 * Addresses that no host answered for and that got no query: the capture cannot tell whether they
 * are name servers.
 */
function unanswered({ neighbours }: Observations): Verdict {
  const missing = neighbours.list.filter(
    ({ answered, longest }) => answered === 0 && longest >= MIN_CASES,
  );
  if (missing.length === 0)
    return excluded(
      neighbours.list.length === 0
        ? 'no query was lost because an address is missing on the local network'
        : `each of ${neighbours.list.length} addresses on the local network is found`,
    );
  const requests = missing.reduce((sum, { asked }) => sum + asked, 0);
  return unknown(
    `${requests} requests for ${listed(missing.map(({ address }) => address))} on the local network got no answer. If that is a name server, its queries are not even sent`,
  );
}
