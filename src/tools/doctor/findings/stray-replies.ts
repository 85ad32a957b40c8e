/** Replies from an address that was not queried. */
import type { RepeatedQuery } from '../observe/asked-again.ts';
import { interfaceAt } from '../../capture/read/packets/link-layer.ts';
import type { Observations } from '../observe/observations.ts';
import { latencyOf, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from '../observe/claims.ts';
import { excluded, type FoundCause, type OptionalText, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { takeSilence } from '../observe/consequences.ts';
import { refusedStrays, wasAnswered } from '../observe/losses.ts';
import { LATE_MS, MOST, OVERTAKEN_MS } from '../thresholds/evidence.ts';
import { REPLIES_REFUSED, STRAYS_FEW, STRAYS_LOST, STRAYS_RARE } from '../thresholds/transport.ts';

/** Replies arrive through a different interface from their queries and stop there (reverse path filter). */
export const repliesElsewhere: FindingKind = {
  code: 'ND3028',
  title: 'Replies arrive through a different interface from their queries, so the node drops them',
  name: 'asymmetric routes and a reverse path filter',
  inCapture(observed, claims) {
    const strays = refusedStrays(observed).length > 0 ? [] : untranslated(observed, claims);
    const aside = repliesAside(strays.filter((stray) => !reachesClient(observed, stray)));
    if (aside.length < STRAYS_FEW || aside.length < MOST * strays.length)
      return excluded(
        'no reply arrived through a different interface from its query and stopped there',
      );
    takeSilence(observed, claims, strays);
    const exchanges = aside.map(({ exchange }) => exchange);
    const pods = [...new Set(exchanges.map(({ hops }) => hops.at(-1)!.server.address))];
    const asked = [...new Set(exchanges.map(({ server }) => server.address))];
    const [{ out, back }] = aside as [Aside];
    return {
      severity: 'critical',
      confidence: 0.93,
      seen: [
        `${share(aside.length, observed.total.asked)} queries to ${listed(asked)} left this node for ${listed(pods)} through interface number ${out}. Their replies arrived through interface number ${back} and were not passed on to the clients.`,
      ],
      why: `The path is asymmetric, because the route from the network of ${listed(pods)} leads back to a different interface on this node. A strict reverse path filter (rp_filter 1) drops packets that arrive through an interface that the kernel would not use to reach their sender.`,
      fix: [
        `Make the routes symmetric. On this node, ip route get ${pods[0]} has to show the interface that the replies use, and the node of ${listed(pods)} has to reach this node through the same network.`,
        'Until then, set a loose filter on the node with sysctl -w net.ipv4.conf.all.rp_filter=2 (the higher of the values for all and for the interface applies).',
      ],
      prove: `on the node, nstat -az TcpExtIPReversePathFilter rises, ip link shows the interfaces ${out} and ${back}, and ip route get ${pods[0]} shows number ${out}`,
      disproved:
        'rp_filter is 0 or 2 there, and the counter does not rise (then a rule drops the replies)',
      exchanges,
    };
  },
};

/** Replies come from an address other than the queried one, so clients discard them. */
export const strayReplies: FindingKind = {
  code: 'ND3016',
  title: 'Replies come from an address that was not queried, so clients discard them',
  name: 'replies from the wrong address',
  inCapture(observed, claims) {
    const seen = refusedStrays(observed);
    const strays = [...seen, ...untranslated(observed, claims)];
    const refused = strays.length === 0 ? refusedReplies(observed) : [];
    if (refused.length > 0) {
      // Kernels limit their ICMP errors, so these clients’ other retries have the same cause.
      const clients = new Set(refused.map(({ first }) => first.client.address));
      const repeats = observed.askedAgain.unexplained(observed.losses);
      claims.take(repeats.flatMap(({ first }) => (clients.has(first.client.address) ? first : [])));
      return refusedFinding(refused);
    }
    if (
      strays.length < 2 ||
      (strays.length < STRAYS_FEW && strays.length < STRAYS_RARE * observed.total.asked)
    )
      return excluded(
        `${strays.length} of ${observed.total.asked} queries got their reply from an address other than the one queried`,
      );
    const isOtherPort =
      seen.length > 0 && seen.every(({ stray, server }) => stray!.address === server.address);
    const from = [...new Set(strays.map((each) => answerer(each, isOtherPort)!))];
    const asked = [...new Set(strays.map(({ server }) => server.address))];
    takeSilence(observed, claims, strays);
    return {
      severity: 'critical',
      confidence: 0.92,
      seen: [
        seen.length > 0 &&
          `${share(seen.length, observed.total.asked)} queries to ${listed(asked)} were answered from ${listed(from)}, ${isOtherPort ? 'a different port' : 'a different address'} from the one that was queried.`,
        strays.length > seen.length &&
          `${share(strays.length - seen.length, observed.total.asked)} queries to ${listed(asked)} were translated to ${listed(from)}. Its replies were seen in transit with its own address but never with the queried one, so the clients did not get them.`,
        refusalText(observed, strays),
      ],
      why: 'Replies are not translated back to the queried address. A proxy in the mesh or network plugin intercepts queries, packets bypass the node that translated them, or a server answers from another of its addresses. A client that queried one address does not accept a reply from another. Or the replies reach the client’s node but are dropped before they are translated (reverse path filter, a raw table rule).',
      fix: [
        'Make servers with several addresses answer from the one that was queried (bind to each, as CoreDNS does).',
        'If only pods that query a DNS pod on the same node are affected, run sysctl -w net.bridge.bridge-nf-call-iptables=1 there (module br_netfilter), so that packets on the bridge are translated.',
        'Avoid asymmetric routes: masquerade traffic between nodes, or use externalTrafficPolicy and routes that lead back over the same node.',
        'If the replies arrive at the node, check sysctl net.ipv4.conf.all.rp_filter (nstat -az TcpExtIPReversePathFilter counts what it drops), and iptables -t raw -S.',
        'Exclude port 53 from the mesh’s interception.',
      ],
      prove: `run tcpdump -ni any host ${from[0]!.split(' ')[0]} and ${isOtherPort ? 'udp' : 'port 53'} on the client’s node`,
      disproved: 'at the client’s own interface, the replies come from the queried address',
      exchanges: strays,
    };
  },
};

/** A sentence if these clients’ kernels report that no socket accepts the replies. */
function refusalText(
  { refusedReplies }: Observations,
  strays: readonly SeenExchange[],
): OptionalText {
  const refused = strays.filter(
    ({ client }) => refusedReplies.get(`${client.address} ${client.port}`) === true,
  );
  const clients = [...new Set(refused.map(({ client }) => client.address))];
  return (
    clients.length > 0 &&
    `The kernel on ${listed(clients)} rejected such replies (ICMP port unreachable).`
  );
}

/**
 * Repeated queries whose reply passed here at once, if the kernels of their clients report that no socket accepts it.
 */
function refusedReplies({
  askedAgain,
  losses,
  refusedReplies,
}: Observations): readonly RepeatedQuery[] {
  const repeats = askedAgain.unexplained(losses);
  const refused = repeats.filter(
    ({ first }) =>
      refusedReplies.get(`${first.client.address} ${first.client.port}`) === true &&
      (latencyOf(first) ?? Infinity) < LATE_MS,
  );
  const clients = new Set(refused.map(({ first }) => first.client.address));
  const theirs = repeats.filter(({ first }) => clients.has(first.client.address));
  return refused.length >= STRAYS_FEW && refused.length >= REPLIES_REFUSED * theirs.length
    ? refused
    : [];
}

function refusedFinding(refused: readonly RepeatedQuery[]): FoundCause {
  const clients = [...new Set(refused.map(({ first }) => first.client.address))];
  const from = [...new Set(refused.map(({ first }) => first.server.address))];
  return {
    severity: 'critical',
    confidence: 0.9,
    seen: [
      `${refused.length} replies from ${listed(from)} arrived at once, but the kernel on ${listed(clients)} rejected them (ICMP port unreachable), and the queries were repeated from the same sockets.`,
      'These sockets were open, but a kernel rejects a reply that does not come from the address that the socket queried.',
    ],
    why: 'The client queried the Service’s address, but the reply arrives from the pod’s address because it was not translated back. Usually, both pods are on one node, and the packets stay on its bridge and bypass the rules (bridge-nf-call-iptables is 0).',
    fix: [
      'On these clients’ node, run sysctl -w net.bridge.bridge-nf-call-iptables=1, and load the module br_netfilter at each boot.',
      'If the DNS pod is on another node, avoid asymmetric routes, since the reply has to return through the node that translated the query.',
    ],
    prove: `in the client’s network, tcpdump -ni any udp port 53 shows queries to the Service’s address but replies from ${from[0]}`,
    disproved: 'at the client’s own interface, the replies come from the queried address',
    exchanges: refused.flatMap(({ first, again }) => [first, again]),
  };
}

/**
 * Lost queries that the pod behind an address answered, where in the same time no reply comes from
 * that address itself.
 */
function untranslated(
  { losses, servers, backends, clients }: Observations,
  claims: Claims,
): readonly SeenExchange[] {
  const answered = losses.filter(
    (loss) => loss.stray === null && wasAnswered(loss) && !claims.isExplained(loss),
  );
  const byPod = Map.groupBy(answered, ({ hops }) => hops.at(-1)!.server.address);
  // Of several pods it may be the replies of one: that of the same node as the client.
  const ofPods = new Set(
    [...byPod].flatMap(([address, theirs]) =>
      theirs.length >= STRAYS_FEW &&
      theirs.length >= STRAYS_LOST * (backends.get(address)?.outcomes.asked ?? Infinity)
        ? theirs
        : [],
    ),
  );
  // A pod may send stray replies only to clients on its own node.
  const byPath = Map.groupBy(
    answered.filter((loss) => !ofPods.has(loss)),
    ({ client, hops }) => `${client.address} ${hops.at(-1)!.server.address}`,
  );
  for (const theirs of byPath.values()) {
    const [{ client, hops }] = theirs as [SeenExchange];
    const isServed = backends.get(hops.at(-1)!.server.address)?.served.has(client.address) ?? true;
    if (theirs.length >= STRAYS_FEW && !isServed) for (const loss of theirs) ofPods.add(loss);
  }
  // Otherwise the replies to one client, whose return path may bypass the translation.
  const byPair = Map.groupBy(
    answered.filter((loss) => !ofPods.has(loss)),
    ({ client, server }) => `${client.address} ${server.address}`,
  );
  const ofClients = new Set(
    [...byPair.values()].flatMap((theirs) => {
      const [{ client, server }] = theirs as [SeenExchange];
      const asked = clients.get(client.address)?.servers.get(server.address)?.asked ?? Infinity;
      return theirs.length >= STRAYS_FEW && theirs.length >= STRAYS_LOST * asked ? theirs : [];
    }),
  );
  const byServer = Map.groupBy(
    answered.filter((loss) => !ofPods.has(loss) && !ofClients.has(loss)),
    ({ server }) => server.address,
  );
  const ofServers = [...byServer].flatMap(([address, theirs]) => {
    const view = servers.get(address);
    const { fromMs, toMs } = sentSpan(theirs);
    // It may begin, or end, within a second in which others were answered.
    const isPause = view?.pauses.some(
      (pause) => fromMs >= pause.fromMs - OVERTAKEN_MS && toMs <= pause.toMs,
    );
    if (isPause === true && theirs.length >= STRAYS_FEW) return theirs;
    const [from, to] = [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)];
    const meanwhile = view?.history.filter(([at]) => at >= from && at <= to) ?? [];
    const asked = meanwhile.reduce((sum, [, second]) => sum + second.asked, 0);
    const lost = meanwhile.reduce((sum, [, second]) => sum + second.lost, 0);
    return lost >= STRAYS_LOST * asked ? theirs : [];
  });
  return [...ofPods, ...ofClients, ...ofServers];
}

interface Aside {
  readonly exchange: SeenExchange;
  readonly out: number;
  readonly back: number;
}

/**
 * True if the untranslated reply passes this node, so that no filter drops it: it shows on several
 * interfaces, as on the ports of a bridge, or the client’s kernel rejects it.
 */
function reachesClient({ refusedReplies }: Observations, { client, hops }: SeenExchange): boolean {
  return (
    (hops.at(-1)?.replyPorts?.length ?? 0) > 1 ||
    refusedReplies.get(`${client.address} ${client.port}`) === true
  );
}

/** Lost queries that left a host through one interface and whose replies arrived through another. */
function repliesAside(strays: readonly SeenExchange[]): readonly Aside[] {
  return strays.flatMap((exchange): readonly Aside[] => {
    const { port, replyPorts = [] } = exchange.hops.at(-1)!;
    const out = interfaceAt(port);
    const backs = replyPorts.map(interfaceAt).filter((each) => each?.capture === out?.capture);
    const [back] = backs;
    if (out === null || back === null || back === undefined) return [];
    if (backs.some((each) => each?.number === out.number)) return [];
    return [{ exchange, out: out.number, back: back.number }];
  });
}

/** The source of the reply. @param withPort with its port, where only that differs */
function answerer({ stray, hops }: SeenExchange, withPort: boolean): string | undefined {
  const peer = stray ?? hops.at(-1)?.server;
  return peer === undefined || !withPort ? peer?.address : `${peer.address} port ${peer.port}`;
}
