/** Clients that are cut off from a server that answers others. */
import { appendTo } from '../../../server/base/append-to.ts';
import { labelOf } from '../cluster/pods.ts';
import type { Asked } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import { isForwarder, isLinkLocal } from '../observe/roles.ts';
import { answered, lossRate } from '../observe/outcomes.ts';
import { explainWaiting, silencesOf } from '../observe/consequences.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { between, clock, listed } from '../texts.ts';
import { choices } from '../observe/dead-names.ts';
import { isProvenDeaf } from '../observe/edns-losses.ts';
import { answeredBetween } from '../observe/losses.ts';
import { netsApart } from '../observe/source-nets.ts';
import { finalServer, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { MIN_CASES, MIN_LASTING_MS } from '../thresholds/evidence.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import { POLICY_CUT, POLICY_CUT_FEW, POLICY_SURE_RESOLVER } from '../thresholds/transport.ts';

type AskingClient = Asked & { readonly address: string };

/** A firewall reports that it rejects these clients' packets. */
export const prohibited: FindingKind = {
  code: 'ND3004',
  title: 'Some pods are cut off from DNS, while others are not',
  name: 'a network policy',
  inCapture(observed, claims) {
    const said = observed.prohibited.entries.filter(([, { count }]) => count >= MIN_CASES);
    const ways = new Map(said);
    // After the translation, a node may be the sender.
    const losses = claims.open.filter((loss) =>
      [loss, ...loss.hops].some(({ client, server }) =>
        ways.has(`${client.address} ${server.address}`),
      ),
    );
    if (losses.length < MIN_CASES)
      return excluded(
        'no firewall sends ICMP errors, and no client is cut off while others are answered',
      );
    claims.take(losses);
    explainWaiting(observed, claims, silencesOf(losses));
    const clients = [...new Set(losses.map(({ client }) => client.address))];
    const servers = [...new Set(losses.map(({ server }) => server.address))];
    const { pods, fine: finePods } = rejectedPods(losses, ways, observed);
    // The node that translates the packets also translates the errors about them.
    const own =
      pods.length === 0 ? said : said.filter(([way]) => pods.includes(way.split(' ')[1]!));
    const count = own.reduce((sum, [, each]) => sum + each.count, 0);
    const senders = [...new Set(own.flatMap(([, each]) => [...each.senders]))];
    const { fromMs, toMs } = sentSpan(losses);
    const isUpstream = clients.every((client) => isForwarder(observed, client));
    const isOfSome = pods.length === 0 && !isUpstream && answersMeanwhile(observed, losses);
    if (finePods.length > 0 || isOfSome)
      return ofSomePods({ losses, clients, servers, pods, finePods, count, senders });
    const isForTime = answeredBefore(observed, clients, servers, fromMs);
    const spared = clientsByServer(observed);
    const fine = servers
      .flatMap((server) => spared.get(server) ?? [])
      .filter(({ address, asked, lost }) => !clients.includes(address) && lost < asked);
    return {
      title: isUpstream ? 'A firewall rejects DNS servers’ queries to their upstream' : this.title,
      severity: 'critical',
      confidence: 0.95,
      seen: [
        `${losses.length} queries from ${listed(clients)} to ${listed(servers)} got no reply, and ${count} packets drew the ICMP error administratively prohibited.`,
        `${listed(senders)} ${senders.length === 1 ? 'sends' : 'send'} these errors, ${between(fromMs, toMs, 'fine')}${isForTime ? '. Before that, these clients were answered' : ''}.`,
        fine.length > 0 &&
          `Other clients are answered by the same server: ${listed(fine.map(({ address }) => address))}.`,
      ],
      why: `Only a rule sends this error, so a firewall or a NetworkPolicy on ${listed(senders)} rejects ${isUpstream ? 'these DNS servers’ queries to their upstream, and external names fail' : 'these pods’ DNS queries'}.`,
      fix: [
        `On ${listed(senders)}, find the rule that rejects UDP port 53 from ${listed(clients)} to ${listed(servers)} (nft list ruleset, iptables-save, the firewall’s policy). Then check what changed at ${clock(fromMs)} UTC.`,
        isUpstream
          ? `Allow UDP and TCP port 53 from all nodes with DNS pods to ${listed(servers)}.`
          : `Allow these pods UDP and TCP port 53 to ${listed(servers)} and the DNS pods behind it (kubectl get networkpolicy -A).`,
      ],
      prove: `run ndots query kubernetes.default @${servers[0]} in such a ${isUpstream ? 'DNS server' : 'pod'}, and tcpdump -ni any icmp or icmp6 on its node, which shows the errors from ${senders[0]}`,
      disproved: `no rule on ${listed(senders)} selects these packets`,
      exchanges: losses,
    };
  },
};

/**
 * The DNS pods to which queries are rejected, if other pods behind the same address answer the same clients, and these
 * others.
 */
function rejectedPods(
  losses: readonly SeenExchange[],
  ways: ReadonlyMap<string, unknown>,
  { backends }: Observations,
): { readonly pods: readonly string[]; readonly fine: readonly string[] } {
  const pods = new Set<string>();
  for (const { server, hops } of losses) {
    const hop = hops.at(-1);
    if (hop === undefined || hop.server.address === server.address) continue;
    if (ways.has(`${hop.client.address} ${hop.server.address}`)) pods.add(hop.server.address);
  }
  const clients = new Set(losses.map(({ hops }) => hops.at(-1)?.client.address));
  const fine = backends.list.filter(
    ({ address, outcomes, clients: theirs }) =>
      !pods.has(address) && answered(outcomes) > 0 && [...theirs].some((one) => clients.has(one)),
  );
  return { pods: [...pods], fine: pods.size === 0 ? [] : fine.map(({ address }) => address) };
}

/** True if each of these clients also gets replies from the same server, between its rejected queries. */
function answersMeanwhile({ flows }: Observations, losses: readonly SeenExchange[]): boolean {
  const byClient = Map.groupBy(losses, ({ client }) => client.address);
  return [...byClient].every(([client, theirs]) => {
    const { fromMs, toMs } = sentSpan(theirs);
    const servers = new Set(theirs.map(({ server }) => server.address));
    return [...servers].every((server) =>
      flows.between([client], server).some((flow) => flow.isAnsweredBetween(fromMs, toMs)),
    );
  });
}

interface OfSomePods {
  readonly losses: readonly SeenExchange[];
  readonly clients: readonly string[];
  readonly servers: readonly string[];
  /** Those to which queries are rejected; none if the capture does not show them. */
  readonly pods: readonly string[];
  readonly finePods: readonly string[];
  readonly count: number;
  readonly senders: readonly string[];
}

/** A firewall rejects queries to some of the servers behind an address, from whichever client they are. */
function ofSomePods(found: OfSomePods): FoundCause {
  const { losses, clients, servers, pods, finePods, count, senders } = found;
  const { fromMs, toMs } = sentSpan(losses);
  const targets = pods.length > 0 ? listed(pods) : `some of the servers behind ${listed(servers)}`;
  return {
    title:
      pods.length > 1 || pods.length === 0
        ? 'A firewall rejects the queries to some DNS pods, while others answer'
        : 'A firewall rejects the queries to one DNS pod, while others answer',
    severity: 'critical',
    confidence: 0.95,
    seen: [
      pods.length > 0
        ? `${losses.length} queries from ${listed(clients)} to ${listed(servers)} were translated to ${targets} and got no reply. ${count} packets to ${targets} drew the ICMP error administratively prohibited.`
        : `${losses.length} queries from ${listed(clients)} to ${listed(servers)} got no reply, and ${count} packets drew the ICMP error administratively prohibited.`,
      `${listed(senders)} ${senders.length === 1 ? 'sends' : 'send'} these errors, ${between(fromMs, toMs, 'fine')}.`,
      pods.length > 0
        ? `Queries from the same clients that went to ${listed(finePods)} were answered.`
        : 'Other queries from the same clients to the same address were answered in the meantime, so the rule does not depend on the client. It rejects the queries that are sent to some of the servers behind this address.',
    ],
    why: `Only a rule sends this error. A firewall, such as that of the pod’s node (firewalld, nftables), or a NetworkPolicy rejects packets to ${targets}. ${pods.length === 1 ? 'This pod is still an endpoint of the Service, so its' : 'They are still endpoints of the Service, so their'} share of the queries fails.`,
    fix: [
      pods.length > 0
        ? `On ${listed(senders)}, which is or precedes the node of ${targets}, find the rule that rejects forwarded UDP port 53 (nft list ruleset, iptables-save, firewall-cmd --list-all), and allow UDP and TCP port 53 to ${targets}.`
        : `Capture on the client’s node to see which DNS pod the rejected queries go to. On that pod’s node, find the rule that rejects forwarded UDP port 53 (nft list ruleset, iptables-save, firewall-cmd --list-all).`,
      'Until then, remove the DNS pod from that node (kubectl cordon, then delete the pod), so that the others get its queries.',
    ],
    prove: `run ndots query kubernetes.default @${pods[0] ?? servers[0]} several times in such a pod, and tcpdump -ni any icmp or icmp6 on its node, which shows the errors`,
    disproved: `no rule on ${pods.length > 0 ? listed(senders) : 'these nodes'} selects these packets`,
    exchanges: losses,
  };
}

/** True if these servers answered these clients before this time. */
function answeredBefore(
  { flows }: Observations,
  clients: readonly string[],
  servers: readonly string[],
  ms: number,
): boolean {
  return servers.some((server) =>
    flows.between(clients, server).some(({ firstReplyMs }) => firstReplyMs < ms),
  );
}

/** Some clients get no reply at all from a server that answers others. */
export const policyCut: FindingKind = {
  code: 'ND3004',
  title: 'Some pods are cut off from DNS, while others are not',
  name: 'a network policy',
  inCapture(observed, claims) {
    if (observed.clients.size < 2) return unknown('the capture has one client');
    const asking = clientsByServer(observed);
    for (const server of observed.servers.list) {
      const theirs = asking.get(server.address);
      if (theirs === undefined || answered(server.outcomes) === 0) continue;
      // If EDNS decides, a client that always uses it gets no replies at all.
      const isDeaf = isProvenDeaf(server, observed);
      const cut = theirs.filter(
        ({ address, asked, lost }) =>
          asked >= POLICY_CUT.queries &&
          lost === asked &&
          !(isDeaf && asksWithEdns(observed, address)),
      );
      const fine = theirs.filter(
        ({ asked, lost }) => asked >= 2 && lossRate({ asked, lost }) < POLICY_CUT.others,
      );
      if (cut.length === 0 || fine.length === 0) continue;
      const addresses = new Set(cut.map(({ address }) => address));
      const losses = claims
        .openTo(server.address)
        .filter(({ client }) => addresses.has(client.address));
      // A single port without replies is a stale connection tracking entry, not a rule.
      const several = cut.some(({ silentPorts }) => silentPorts.length > 1);
      if (!several || losses.length < POLICY_CUT.queries) continue;
      if (!areOthersServed(observed, server.address, losses)) continue;
      const byEdns = goesByEdns(observed, addresses, fine);
      // A rule about pods is unlikely to affect exactly those that use EDNS.
      if (byEdns && -choices(cut.length + fine.length, cut.length) < Math.log(UNLIKELY_DEAD))
        continue;
      if (byEdns && areOfManyKinds(observed, addresses, fine)) continue;
      claims.take(losses);
      const served = fine.map((each) => each.address);
      const atServers = arrivedAt(observed, losses);
      const nets = atServers.length === 0 ? null : netsApart([...addresses], served);
      const listing = nets === null ? null : ofAccessList(atServers, nets);
      return {
        title: listing?.title ?? this.title,
        severity: 'critical',
        confidence: cut.length + fine.length > POLICY_CUT_FEW ? 0.9 : 0.8,
        seen: [
          ...(listing?.seen ?? []),
          `All ${losses.length} queries from ${listed([...addresses])} to ${server.address} got no reply, from every port and for every name.`,
          servedText(server.address, fine.length),
          byEdns &&
            'All queries from the cut-off clients use EDNS (an OPT record), while none from the others do. A device that drops EDNS would look the same (ND4009).',
        ],
        why:
          listing?.why ??
          'Losses that depend only on the client are caused by a rule, such as a NetworkPolicy that does not allow these pods to reach DNS. In a common case, the policy allows the kube-dns pods, but queries go to the node-local cache’s address.',
        fix: [
          ...(listing?.fix ?? []),
          `Allow these pods UDP and TCP port 53 to ${server.address} (check kubectl get networkpolicy -A). For a node-local cache, use an ipBlock with its address.`,
        ],
        prove:
          listing?.prove ??
          `run ndots query kubernetes.default @${server.address} in such a pod, also with +tcp, and repeat after changing the policy`,
        disproved:
          listing?.disproved ??
          'no policy selects these pods, and others on the same node are answered (then their connection to that node is at fault)',
        exchanges: losses,
      };
    }
    const little = observed.clients.list.filter(({ servers }) =>
      [...servers.values()].some(({ asked, lost }) => asked >= 2 && lost === asked),
    );
    return little.length > 0
      ? unknown('clients without replies sent too few queries, or their losses have another cause')
      : excluded('no client is cut off while others are answered');
  },
  inCluster({ cutOff, clientPods }) {
    if (cutOff === null) return unknown('pods or network policies could not be listed');
    if (cutOff.length === 0)
      return excluded(`network policies allow all ${clientPods} pods to send to port 53`);
    const pods = cutOff.reduce((sum, { group }) => sum + group.pods, 0);
    const tcp = cutOff.filter(({ protocol }) => protocol === 'TCP');
    return {
      severity: 'warning',
      confidence: 0.8,
      seen: [
        `${pods} of ${clientPods} pods are selected by egress policies, none of which allows them to send to port 53${tcp.length === cutOff.length ? ' over TCP' : ''}: ${listed(cutOff.map(({ group }) => `${labelOf(group)} (${group.pods})`))}.`,
      ],
      affected: cutOff.map(({ group }) => labelOf(group)),
      why:
        tcp.length === cutOff.length
          ? 'A policy allows UDP only, so answers that have to be fetched over TCP never arrive.'
          : 'Every lookup by these pods waits until it times out. (Pods that do not need DNS may be cut off on purpose.)',
      fix: [
        'Allow UDP and TCP port 53 to the DNS pods and, if each node has a cache, to its address (ipBlock 169.254.20.10/32).',
      ],
      prove: `kubectl get networkpolicy -n ${cutOff[0]!.group.namespace} -o yaml`,
      disproved:
        'a policy of another kind (CiliumNetworkPolicy, AdminNetworkPolicy) allows this traffic (doctor does not examine these)',
      places: [...new Set(cutOff.flatMap((each) => each.policies))].map(
        (name) => `NetworkPolicy ${name}`,
      ),
    };
  },
};

/** True if the losses last, and others are answered between them. Otherwise, the server was away. */
function areOthersServed(
  observed: Observations,
  address: string,
  losses: readonly SeenExchange[],
): boolean {
  const { fromMs, toMs } = sentSpan(losses);
  return toMs - fromMs >= MIN_LASTING_MS && answeredBetween(observed, address, fromMs, toMs);
}

/** The other clients that the server answers. */
function servedText(address: string, clients: number): string {
  return isLinkLocal(address)
    ? `${clients} other ${clients === 1 ? 'client is' : 'clients are'} answered by ${address}. Each node has its own cache at that address, so if these clients are on another node, the first node’s cache does not answer.`
    : `${clients} other ${clients === 1 ? 'client is' : 'clients are'} answered by the same server.`;
}

/**
 * The servers that the lost queries reached, by their own addresses. Empty unless the capture was
 * taken there, so that it has queries of these servers, too.
 */
function arrivedAt({ clients }: Observations, losses: readonly SeenExchange[]): readonly string[] {
  const reached = losses.map((loss) => finalServer(loss).address);
  const there = reached.filter((address) => clients.get(address) !== undefined);
  return there.length >= MIN_CASES ? [...new Set(there)] : [];
}

/** Texts for a server that receives queries from some networks and answers none of them. */
function ofAccessList(
  servers: readonly string[],
  nets: readonly string[],
): Pick<FoundCause, 'title' | 'seen' | 'why' | 'fix' | 'prove' | 'disproved'> {
  const [those, sources] = [listed(servers), listed(nets)];
  return {
    title: 'A DNS server receives queries from some networks and answers none of them',
    seen: [
      `These queries arrive at ${those}, whose own queries are also in this capture. All clients without replies are in ${sources}, and no answered client is.`,
    ],
    why: `${those} receives the queries and sends neither a reply nor an error, so its own access list silently drops them. The list does not contain ${sources}, for example because a new node pool uses a different pod network. (Otherwise, a NetworkPolicy or firewall between this capture and the process drops them.)`,
    fix: [
      `Add ${sources} to the access list of ${those}: allow-from in PowerDNS Recursor, addACL in dnsdist, access-control in Unbound, the acl plugin in CoreDNS, allow-query in BIND.`,
    ],
    prove: `on the host of ${those}, run ndots query kubernetes.default @${servers[0]!}, which is answered, and the same in a pod in ${sources}, which increases the server’s counters of unauthorized or dropped queries`,
    disproved: `the access list of ${those} allows ${sources} (then a policy or firewall on its host drops the queries)`,
  };
}

/** Clients and their query counts, by server. */
function clientsByServer({ clients }: Observations): ReadonlyMap<string, readonly AskingClient[]> {
  const all = new Map<string, AskingClient[]>();
  for (const { address, servers } of clients.list)
    for (const [server, counts] of servers) appendTo(all, server, { address, ...counts });
  return all;
}

/** True if the clients that are cut off always use EDNS, and the others never do. */
function goesByEdns(
  observed: Observations,
  cut: ReadonlySet<string>,
  fine: readonly { readonly address: string }[],
): boolean {
  return (
    [...cut].every((address) => asksWithEdns(observed, address)) &&
    fine.every(({ address }) => observed.clients.get(address)?.withEdns === 0)
  );
}

/** True if the client always uses EDNS. */
function asksWithEdns({ clients }: Observations, address: string): boolean {
  const client = clients.get(address);
  return client !== undefined && client.withEdns === client.outcomes.asked;
}

/**
 * True if the clients that are cut off are different programs, while others of the same kinds are
 * answered without EDNS. What they have in common is then EDNS.
 */
function areOfManyKinds(
  { clients }: Observations,
  cut: ReadonlySet<string>,
  fine: readonly { readonly address: string }[],
): boolean {
  const kindsOf = (addresses: Iterable<string>): ReadonlySet<string> =>
    new Set(
      [...addresses].flatMap((address) => {
        const best = clients.get(address)?.recognition.best ?? null;
        return best !== null && best.either >= POLICY_SURE_RESOLVER ? best.kind : [];
      }),
    );
  const theirs = kindsOf(cut);
  const others = kindsOf(fine.map(({ address }) => address));
  return theirs.size >= 2 && [...theirs].some((kind) => others.has(kind));
}
