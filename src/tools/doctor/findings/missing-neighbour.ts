/** Addresses that no host on the local network answers for. */
import type { Observations } from '../observe/observations.ts';
import type { ServerHistory, ServerView } from '../observe/server-view.ts';
import { choices } from '../observe/dead-names.ts';
import { excluded, unknown, type FindingKind, type FoundCause, type Verdict } from './finding.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { listed } from '../texts.ts';
import { MAX_CHANCE, MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { NEIGHBOUR_REPORT_MS } from '../thresholds/transport.ts';

export const missingNeighbour: FindingKind = {
  code: 'ND3015',
  title: 'Packets cannot be sent because no host on the local network has the next address',
  name: 'a neighbour that is gone, or a full neighbour table',
  inCapture(observed, claims) {
    const overflow = observed.counters.get('neighbourOverflow') ?? 0;
    const servers = observed.servers.list.flatMap((server) => {
      const { address } = server;
      const neighbour = observed.neighbours.list.find((each) => each.address === address);
      const asked = neighbour?.longest ?? 0;
      const icmp =
        (observed.unreachable.get(address)?.noNeighbour ?? 0) + unquotedOf(observed, address);
      if (asked < MIN_CASES && icmp < MIN_CASES) return [];
      // If this address answers other clients at the time, several servers share it and one of them is
      // gone: no neighbour is missing.
      return isAway(server) ? [{ address, asked, icmp }] : [];
    });
    if (servers.length === 0 && overflow === 0) return notFound(observed) ?? unanswered(observed);
    const addresses = servers.map(({ address }) => address);
    const losses = addresses.flatMap((address) => claims.openTo(address));
    if (losses.length < MIN_CASES && overflow === 0)
      return excluded(
        'no query was lost for the addresses that no host answered for on the local network',
      );
    claims.take(losses);
    const gone = goneNeighbours(observed, addresses);
    const missing = [
      ...gone.map(({ address }) => address),
      ...servers.flatMap(({ address, asked }) => (asked > 0 || gone.length === 0 ? address : [])),
    ];
    const [first = 'ADDRESS'] = missing;
    // The capture shows no pod behind the address, and no request for one.
    const [only] = servers;
    const isService =
      servers.length === 1 &&
      only!.asked === 0 &&
      gone.length === 0 &&
      observed.backends.size === 0 &&
      isOfCluster(observed, only!.address);
    // If it still answers some queries, the error is about only one of the hosts behind it.
    const isOneOfSeveral = isService && answersAmid(observed, only!.address, losses);
    const isUntranslated = isService && !isOneOfSeveral;
    return {
      title: isUntranslated
        ? 'The DNS Service’s address reaches a router untranslated, and no host has that address'
        : isOneOfSeveral
          ? 'A DNS pod behind the Service no longer has a host, so its queries are rejected'
          : this.title,
      severity: 'critical',
      confidence: overflow > 0 ? 0.95 : 0.85,
      seen: [
        ...goneTexts(gone),
        ...servers.slice(0, 3).map((each) => signText(each, gone.length > 0)),
        overflow > 0 && `The kernel reported a neighbour table overflow ${overflow} times.`,
      ],
      why: whyMissing(first, isOneOfSeveral, isUntranslated),
      fix: [
        isOneOfSeveral &&
          'Compare the endpoints with the running pods (kubectl -n kube-system get endpointslices,pods -o wide -l k8s-app=kube-dns). Query each endpoint, and delete the pod on the failed node.',
        isUntranslated &&
          `On these clients’ node, check whether kube-proxy runs and has rules for ${first} (iptables-save, ipvsadm -ln or nft list ruleset, with grep ${first}).`,
        ...(overflow > 0 ? [enlarge, find(first)] : [find(first), enlarge]),
      ],
      prove: `on the clients’ node, run ip neigh show ${first}; arping ${first} (ndisc6 for IPv6); ip neigh | wc -l; dmesg | grep -i "neighbo.r.*overflow"`,
      disproved: `ip neigh shows ${first} as REACHABLE while queries are lost`,
      exchanges: losses,
    };
  },
};

/** An address that no host answers for. */
interface Missing {
  readonly address: string;
  /** Requests on the local network. */
  readonly asked: number;
  readonly icmp: number;
}

/**
 * The addresses near these that no host answers for, most requested first. Several servers share a Service's address, so
 * the missing neighbour is the server that is gone.
 */
function goneNeighbours(
  { neighbours }: Observations,
  addresses: readonly string[],
): Observations['neighbours']['list'] {
  return neighbours.list
    .filter(
      ({ address, unanswered }) =>
        unanswered >= MIN_CASES && !addresses.includes(address) && isLikely(address, addresses),
    )
    .toSorted((one, other) => other.longest - one.longest);
}

function goneTexts(
  gone: readonly { readonly address: string; readonly longest: number }[],
): readonly string[] {
  return gone
    .slice(0, 3)
    .map(
      ({ address, longest }) =>
        `${address} was requested on the local network (ARP, neighbour discovery) ${times(longest)}, but no host answered.`,
    );
}

function signText({ address, asked, icmp }: Missing, isOtherGone: boolean): string {
  const [from, which] = isOtherGone
    ? ['', 'the translated address']
    : [' from a router', 'this address or the translated one'];
  const signs = [
    asked > 0 &&
      `was requested on the local network (ARP, neighbour discovery) ${times(asked)}, without an answer`,
    icmp > 0 &&
      `drew ICMP host or address unreachable${from} ${times(icmp)}, because no host has ${which}`,
  ];
  return `${address} ${signs.filter((sign) => sign !== false).join(' and ')}.`;
}

function whyMissing(first: string, isOneOfSeveral: boolean, isUntranslated: boolean): string {
  return isOneOfSeveral
    ? `${first} still answers other queries. The node translates some of them to a pod whose host or address is gone, which a router reports. That pod’s endpoint has not been removed yet, because its node failed or kube-proxy on this node has fallen behind.`
    : isUntranslated
      ? `Packets to ${first} reach a router that knows no host with that address. If it is the DNS Service’s address, the node did not translate it to a pod, because the rules of kube-proxy (or its replacement) are missing there. Otherwise, the pod behind it is gone.`
      : 'Before a packet leaves on a local network, its sender has to know the next host’s hardware address. The host is gone, or the kernel’s neighbour table is full (many pods in one flat network) and loses entries as fast as it learns them.';
}

/** True if the server answers queries that were sent after the first of these losses. */
function answersAmid(
  { servers }: Observations,
  address: string,
  losses: readonly SeenExchange[],
): boolean {
  const { fromMs } = sentSpan(losses);
  return (servers.get(address)?.history ?? []).some(
    ([second, { asked, lost }]) => second * 1000 > fromMs && asked - lost >= MIN_CASES,
  );
}

/** True if clients query the server for cluster names. */
function isOfCluster({ names, domains }: Observations, address: string): boolean {
  return names.list.some(({ name, servers }) => domains.isOfCluster(name) && servers.has(address));
}

/**
 * The number of ICMP errors that belong to this server although the capture cuts off the missing
 * address. They went to clients that lose queries to this server, and to no other, at that time.
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
 * True if packets to these may be translated to the address. It has to be in the same family, and
 * not link-local, because hosts probe such addresses for duplicates (RFC 4862).
 */
function isLikely(address: string, servers: readonly string[]): boolean {
  return (
    !address.startsWith('fe80:') &&
    servers.some((server) => server.includes(':') === address.includes(':'))
  );
}

/**
 * A name server that gets no query because its hardware address is not found. Lookups begin when
 * the kernel has given up. Null if there is none.
 */
function notFound(observed: Observations): FoundCause | null {
  const all = Map.groupBy(observed.wantedNeighbours.list, ({ address }) => address);
  for (const { address, asked, answered } of observed.neighbours.list) {
    const wanted = all.get(address) ?? [];
    // An address that gets queries has been found, or more than a few clients have lost it.
    if (asked < MIN_CASES || answered > 0 || observed.servers.get(address) !== undefined) continue;
    // Hosts that are not DNS clients look for the address for another reason.
    if (wanted.some(({ asker }) => observed.clients.get(asker) === undefined)) continue;
    const late = wanted.reduce((sum, each) => sum + each.late, 0);
    const lookups = wanted.reduce((sum, each) => sum + each.late + each.otherwise, 0);
    if (late < MIN_CASES || late < MOST * lookups) continue;
    const chance = wanted.reduce((sum, each) => sum + each.late * Math.log(each.chance), 0);
    if (Math.exp(choices(lookups, late) + chance) > MAX_CHANCE) continue;
    const askers = new Set(wanted.map(({ asker }) => asker));
    const exchanges = observed.begunLate.filter(({ client }) => askers.has(client.address));
    return {
      severity: 'warning',
      confidence: 0.6,
      seen: [
        `${address} was requested on the local network (ARP, neighbour discovery) ${times(asked)}, but no host answered.`,
        `${late} of ${lookups} lookups from the ${askers.size === 1 ? 'client that requests' : `${askers.size} clients that request`} it start a second after such a request has failed. No query is sent to the address, so none is lost.`,
      ],
      why: `The timing suggests that ${address} is the clients’ first name server. Before a query leaves, its sender has to know the next host’s hardware address. No host answers for up to three seconds. Then the sender’s own kernel drops the query, and the program tries its next name server.`,
      fix: [
        `Restore the host with ${address}, or remove the address from the clients’ resolv.conf (nameserver lines, kubelet’s clusterDNS, dnsConfig).`,
        find(address),
      ],
      prove: `in a client, /etc/resolv.conf lists ${address}, and ip neigh show ${address}; prints FAILED or INCOMPLETE after ndots query ${exchanges[0]?.name ?? 'NAME'} @${address}`,
      disproved: `${address} is not in the clients’ resolv.conf files, and another program on them uses it`,
      exchanges,
    };
  }
  return null;
}

const enlarge =
  'If the kernel reports an overflow, run sysctl -w net.ipv4.neigh.default.gc_thresh1=8192 gc_thresh2=32768 gc_thresh3=65536 on the nodes.';

function find(address: string): string {
  return `Check whether the host or pod with ${address} still exists (kubectl get nodes,pods -A -o wide | grep ${address}), and why it is still an endpoint or the next hop of a route (ip route get ${address}).`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** True if (nearly) nothing is answered between the first and the last second with losses. */
function isAway({ history }: ServerView): boolean {
  const isLossy = ([, { lost }]: ServerHistory[number]): boolean => lost > 0;
  const within = history.slice(history.findIndex(isLossy) + 1, history.findLastIndex(isLossy) + 1);
  const asked = within.reduce((sum, [, second]) => sum + second.asked, 0);
  return within.reduce((sum, [, second]) => sum + second.lost, 0) >= MOST * asked;
}

/**
 * Addresses that no host answered for and that got no query, so the capture cannot tell whether
 * they are name servers.
 */
function unanswered({ neighbours }: Observations): Verdict {
  const missing = neighbours.list.filter(
    ({ answered, longest }) => answered === 0 && longest >= MIN_CASES,
  );
  if (neighbours.size === 0)
    return unknown('the capture contains no ARP packets, and no router reports a missing address');
  if (missing.length === 0)
    return excluded(
      `all ${neighbours.size} addresses that were requested on the local network were found`,
    );
  const requests = missing.reduce((sum, { asked }) => sum + asked, 0);
  return unknown(
    `${requests} requests for ${listed(missing.map(({ address }) => address))} on the local network got no answer (if that is a name server, queries to it are not even sent)`,
  );
}
