/** Losses that no other finding explains. */
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  excluded,
  unknown,
  type FindingKind,
  type FoundCause,
  type OptionalText,
} from './finding.ts';
import { keysOf, clock, fromTo, listed, sentence, share, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { firstTries, onlyAaaa } from '../observe/losses.ts';
import { lossWaves, type LossWave } from '../observe/loss-waves.ts';
import { lossyPods } from '../observe/pods-apart.ts';
import { stoppedBefore } from '../observe/stopped-before.ts';
import { askersText } from '../observe/roles.ts';
import { FELT_SHARE, MAX_CHANCE, MIN_CASES, SPARED_SHARE } from '../thresholds/evidence.ts';
import {
  LOSS_AROUND_MS,
  LOSS_EXPECTED,
  LOSS_FELT_BY_FEW,
  LOSS_LATER_HALF,
  LOSS_MOMENT_MS,
  LOSS_RARE,
  LOSS_REST,
  MIN_LOSS_QUERIES,
} from '../thresholds/transport.ts';

export const randomLoss: FindingKind = {
  code: 'ND3013',
  title: 'Queries or replies are lost at random, regardless of client, name and time',
  name: 'loss without a pattern',
  inCapture(observed, claims) {
    const losses = firstTries(claims.open);
    if (observed.total.asked < MIN_LOSS_QUERIES) return unknown('too few queries');
    if (losses.length < MIN_CASES || losses.length < LOSS_RARE * askedMeanwhile(observed, losses))
      return excluded(lossText(observed, claims));
    if (isRest(claims)) {
      claims.take(claims.open);
      return excluded('the remaining losses coincide with others that another finding explains');
    }
    const outside = outsideAlone(observed, losses);
    if (outside !== null && unexplainedFailures(observed, claims) >= MIN_CASES) {
      // They stay open, so that the time of these losses is still examined separately.
      claims.unanswered.push(...losses);
      return excluded(
        'only external names are lost, and others get SERVFAIL: the server waits for an upstream',
      );
    }
    const [servers, clients] = [keysOf(losses, atServer), keysOf(losses, ofClient)];
    const loss = { losses, whole: claims.open, servers, clients };
    const spared = sparedBeside(observed, clients, servers);
    return {
      severity: isMuch(observed, loss, spared) ? 'critical' : 'warning',
      exchanges: loss.whole,
      ...variantOf(observed, loss, outside, spared),
    };
  },
};

type Variant = Omit<FoundCause, 'severity' | 'exchanges'>;

interface Loss {
  /** The first tries. */
  readonly losses: readonly SeenExchange[];
  readonly whole: readonly SeenExchange[];
  readonly servers: readonly string[];
  readonly clients: readonly string[];
}

/** The facts that tell losses without a pattern apart. */
interface Differences extends Loss {
  readonly lostText: string;
  /** Queries to the servers. */
  readonly asked: number;
  readonly spared: ReturnType<typeof sparedBeside>;
  readonly beside: ReturnType<typeof otherServers>;
  readonly stopped: ReturnType<typeof stoppedBefore>;
  readonly isOnlyAaaa: boolean;
}

const atServer = ({ server }: SeenExchange): string => server.address;
const ofClient = ({ client }: SeenExchange): string => client.address;

function isMoment({ whole }: Loss): boolean {
  const { fromMs, toMs } = sentSpan(whole);
  return toMs - fromMs <= LOSS_MOMENT_MS;
}

/** True if these are many of all queries, or of those of the only clients that lose any. */
function isMuch(
  observed: Observations,
  loss: Loss,
  spared: ReturnType<typeof sparedBeside>,
): boolean {
  const { losses } = loss;
  const asked = isMoment(loss) ? observed.total.asked : askedMeanwhile(observed, losses);
  return (
    losses.length >= FELT_SHARE * asked ||
    (spared !== null && losses.length >= LOSS_FELT_BY_FEW * spared.asked)
  );
}

/** The kind of loss: by pod, by name, in waves, or without a pattern. */
function variantOf(
  observed: Observations,
  loss: Loss,
  outside: ReturnType<typeof outsideAlone>,
  spared: ReturnType<typeof sparedBeside>,
): Variant {
  const { losses, whole, servers, clients } = loss;
  const asked = servers.reduce(
    (sum, address) => sum + (observed.servers.get(address)?.outcomes.asked ?? 0),
    0,
  );
  const stopped = stoppedBefore(observed, losses);
  const isOnlyAaaa = onlyAaaa(losses);
  const pods = spared === null && stopped === null ? lossyPods(observed) : null;
  const lostText = `${share(losses.length, asked)} queries to ${listed(servers)} got no reply, from ${askersText(observed, clients)}.`;
  if (pods !== null) return toSomePods(pods);
  if (outside !== null && !isOnlyAaaa && spared === null && stopped === null)
    return ofOutside(outside, lostText, losses[0]!);
  const beside = spared === null ? otherServers(observed, losses, servers) : null;
  const isWhole = spared === null && beside === null && stopped === null && !isOnlyAaaa;
  const waves = isWhole ? lossWaves(observed, servers, whole) : [];
  if (waves.length > 0) return inWaves(waves, observed.total.lost, lostText, servers[0]!);
  return withoutPattern(observed, {
    ...loss,
    ...{ lostText, asked, spared, beside, stopped, isOnlyAaaa },
  });
}

function withoutPattern(observed: Observations, differences: Differences): Variant {
  const { clients, spared, beside, isOnlyAaaa } = differences;
  return {
    title:
      beside !== null
        ? 'Queries to one server are lost, but not to others'
        : isOnlyAaaa
          ? 'AAAA queries, the second of each pair, are sometimes lost, but A queries never are'
          : spared === null
            ? randomLoss.title
            : `Only ${clients.length === 1 ? 'one client loses' : 'some clients lose'} queries or replies`,
    confidence: 0.6,
    seen: seenOf(observed, differences),
    why: isOnlyAaaa
      ? 'Connection tracking drops a socket’s second packet if it arrives before the first one has an entry (a race: insert_failed), or a device in between occasionally drops AAAA. Repeated queries are answered, so no filter drops all of them.'
      : 'A link, network card or machine in between drops packets because of congestion, errors or a queue that is too short. Or address translation gave two flows the same port (masquerading without --random-fully).',
    fix: fixOf(differences),
    prove: 'ndots capture join client.pcap node.pcap server.pcap shows where packets are lost',
    disproved:
      spared === null
        ? 'the losses turn out to share one name, client, node or moment'
        : 'other clients that send as many queries lose as many',
  };
}

function seenOf(observed: Observations, differences: Differences): readonly OptionalText[] {
  const { losses, whole, servers, clients, lostText } = differences;
  const { asked, spared, beside, stopped, isOnlyAaaa } = differences;
  const { fromMs, toMs } = sentSpan(whole);
  const since = askedOf(observed, servers, losses);
  const behind = losses.filter(({ hops }) => hops.length > 0);
  const beyond = behind.filter(({ hops }) => hops.every(({ repliedMs }) => repliedMs === null));
  return [
    `${lostText}${since < LOSS_LATER_HALF * asked ? ` From ${clock(fromMs)} on, the share is ${share(losses.length, since)}.` : ''}`,
    isOnlyAaaa &&
      `All ${losses.length} lost queries are AAAA, while none of ${observed.types.get(TYPE.A)?.asked ?? 0} A queries was lost. Programs send AAAA right after A from the same socket.`,
    beside !== null &&
      sentence(
        `The same clients lose ${share(beside.lost, beside.asked)} queries to ${listed(beside.servers)}. The lost ones are for ${listed(losses.map(({ name }) => name))}`,
      ),
    isMoment(differences)
      ? `All of them were sent within ${took(toMs - fromMs)}, while other queries sent during that time were answered.`
      : spared !== null
        ? `All of them are from ${listed(clients)}, which sent ${spared.asked} queries to the same address, while ${askersText(observed, spared.others)} lost ${share(spared.othersLost, spared.othersAsked)} there.`
        : (socketsText(observed, losses) ??
          `The lost queries have ${isOnlyAaaa ? 'nothing else' : 'nothing'} in common (${isOnlyAaaa ? '' : 'type, '}name, port, time).`),
    behind.length > 0 &&
      `${share(beyond.length, behind.length)} of the queries that were seen on their way to a DNS pod were not answered there. The replies to the others were lost on the way back.`,
    stopped !== null &&
      `${share(stopped.lost.length, losses.length)} lost queries were seen before the translation of ${listed(servers)} but not after it, while ${stopped.passed} others were seen on both sides. They were lost between these two points on the node rather than at a DNS server.`,
  ];
}

function fixOf({
  clients,
  servers,
  spared,
  beside,
  stopped,
  isOnlyAaaa,
}: Differences): readonly OptionalText[] {
  const isAnywhere = stopped === null && !isOnlyAaaa;
  return [
    beside !== null &&
      `Check ${servers[0]!} and the path to it, since other servers answer the same clients. The server is overloaded, or its link or a firewall in front of it drops packets.`,
    isOnlyAaaa &&
      'Compare the node’s conntrack -S (insert_failed) with the lost queries. If it rises, use a node-local cache, a newer kernel, or the option single-request-reopen (for glibc).',
    stopped !== null &&
      !isOnlyAaaa &&
      'Check connection tracking on this node. Compare nf_conntrack_count with nf_conntrack_max (dmesg logs "table full, dropping packet"), and check conntrack -S (insert_failed, drop).',
    spared !== null &&
      !isOnlyAaaa &&
      `Start with ${listed(clients)}, because the servers and the shared path work for other clients. Check the pod’s own interface and node (ip -s link, tc -s qdisc), and network policies that select it.`,
    'To find where packets are lost, capture at the client, on its node and at the server at the same time, and join the captures.',
    // A dead pod loses A queries as well, and after the translation.
    isAnywhere &&
      'If several pods share the address and the loss rate matches one pod’s share, query each endpoint. To a client that uses a new port for each query (Go), a dead pod looks like random loss.',
    isAnywhere &&
      'Check ip -s link (drops, errors) and conntrack -S (insert_failed, drop) on the nodes.',
  ];
}

function toSomePods(pods: NonNullable<ReturnType<typeof lossyPods>>): Variant {
  const [hit, fine] = [pods.lossy, pods.spared].map((each) =>
    listed(each.map(({ address, asked: all, lost }) => `${address} ${share(lost, all)}`)),
  );
  return {
    title: 'Queries to some DNS pods are lost on the network path to their nodes',
    confidence: 0.8,
    seen: [
      `The share of lost queries depends on the DNS pod (${hit}, but ${fine}).`,
      'Some queries are lost from every client that uses these pods. The pods answer the rest, so they are not dead.',
    ],
    why: 'Packets are lost between this node and these pods’ nodes. A link, network card, tunnel or switch port drops them, or a queue is too short. Pods on this node are not affected.',
    fix: [
      `Find the nodes that these pods run on with kubectl -n kube-system get pods -o wide | grep -e ${pods.lossy.map(({ address }) => address).join(' -e ')}`,
      'Compare drops and errors on these nodes and on this one (ip -s link, ethtool -S, the tunnel’s interface), and run a long ping or mtr between the nodes.',
      'Until then, use internalTrafficPolicy: Local with a DNS pod on each node, or a node-local cache.',
    ],
    prove: `ping -i 0.2 -c 300 from this node to the node of ${pods.lossy[0]!.address} shows a similar loss`,
    disproved:
      'other packets between these nodes get through (then the pods themselves drop queries)',
  };
}

function ofOutside(
  outside: { readonly asked: number; readonly inside: number },
  lostText: string,
  { name, server }: SeenExchange,
): Variant {
  return {
    title: 'Queries for external names are lost, while cluster names are answered',
    confidence: 0.7,
    seen: [
      lostText,
      `All lost queries are for external names, of which ${outside.asked} were queried from the first loss to the last. None of ${outside.inside} queries for cluster names was lost during that time.`,
    ],
    why: 'The server answers cluster names from memory, so it runs, and the path to it works. It forwards external names, so its upstream, or the path to it, loses queries or is too slow for these clients.',
    fix: [
      'Capture at a DNS pod, to see which upstream does not answer, and whether its queries leave the node.',
      'Query each upstream from a DNS pod’s node. Use more than one upstream, with health checks (as in forward).',
    ],
    prove: `run ndots query ${name} at each upstream of ${server.address}, many times`,
    disproved: 'queries for cluster names are also lost',
  };
}

/** @param all the lost queries of the whole capture */
function inWaves(
  waves: readonly LossWave[],
  all: number,
  lostText: string,
  server: string,
): Variant {
  const lost = waves.reduce((sum, each) => sum + each.lost, 0);
  return {
    title: 'Queries are lost in waves: for seconds none is answered, and then they are again',
    confidence: 0.75,
    seen: [
      lostText,
      sentence(
        `All queries were lost in ${waves.length} waves: ${listed(waves.map(({ fromMs, toMs, lost: theirs }) => `${fromTo(fromMs, toMs)} (${theirs} queries)`))}`,
      ),
      `${share(lost, all)} lost queries belong to these waves. Queries between the waves were answered.`,
    ],
    why: 'Something on the path fills up and empties again. A NAT gateway without free source ports, or a full connection tracking table, drops every new flow until old entries expire (30 s for UDP). A link that fails again and again, or a server that restarts repeatedly, looks the same.',
    fix: [
      `Capture on both sides of the address translation between these clients and ${server}, to see whether queries leave it during a wave.`,
      'Check the source ports and the table at the NAT gateway or node (the cloud’s port allocation metrics, conntrack -C, conntrack -S). Add ports or addresses, or raise nf_conntrack_max.',
      'Use a cache on the node, so that fewer queries need a new flow.',
      `If queries leave, check whether ${server} or a link to it restarts at these times.`,
    ],
    prove: 'ndots capture join client.pcap gateway.pcap shows where a wave’s queries are lost',
    disproved: 'other clients’ queries to the same server are answered during a wave',
  };
}

/**
 * The queries for external names during these losses, and for cluster names, if only external ones
 * are lost and that is not chance. Otherwise null.
 */
function outsideAlone(
  { ways, domains }: Observations,
  losses: readonly SeenExchange[],
): { readonly asked: number; readonly inside: number } | null {
  if (losses.some(({ name }) => domains.isOfCluster(name))) return null;
  const { fromMs, toMs } = sentSpan(losses);
  const { inside, outside } = ways.between(fromMs, toMs);
  const all = inside.asked + outside.asked;
  if (inside.lost > 0 || (outside.asked / all) ** losses.length >= MAX_CHANCE) return null;
  return { asked: outside.asked, inside: inside.asked };
}

/** The number of SERVFAIL replies for external names that no finding explains. */
function unexplainedFailures({ failed, domains }: Observations, { names }: Claims): number {
  return failed.filter(
    ({ name, rcode }) => rcode === RCODE.SERVFAIL && !domains.isOfCluster(name) && !names.has(name),
  ).length;
}

/** The number of queries to the servers from the first of these losses on. */
function askedOf(
  { servers }: Observations,
  addresses: readonly string[],
  losses: readonly SeenExchange[],
): number {
  const fromS = Math.floor(sentSpan(losses).fromMs / 1000);
  return addresses
    .flatMap((address) => servers.get(address)?.history ?? [])
    .reduce((sum, [second, { asked }]) => (second >= fromS ? sum + asked : sum), 0);
}

/**
 * The other servers used by clients that lose queries to one server, if they lose hardly any. Null
 * if there are none, or they lose as many.
 */
function otherServers(
  { clients }: Observations,
  losses: readonly SeenExchange[],
  hit: readonly string[],
): { readonly servers: readonly string[]; readonly asked: number; readonly lost: number } | null {
  if (hit.length > 1) return null;
  const losers = new Set(losses.map(({ client }) => client.address));
  const others = new Set<string>();
  const own = { asked: 0, lost: 0 };
  const sum = { asked: 0, lost: 0 };
  for (const address of losers)
    for (const [server, { asked, lost }] of clients.get(address)?.servers ?? []) {
      const into = hit.includes(server) ? own : sum;
      into.asked += asked;
      into.lost += lost;
      if (into === sum) others.add(server);
    }
  const rate = own.lost / Math.max(1, own.asked);
  return sum.asked * rate >= LOSS_EXPECTED && sum.lost <= SPARED_SHARE * sum.asked * rate
    ? { servers: [...others], ...sum }
    : null;
}

/** Other clients' queries to the same servers, if hardly any are lost. Otherwise null. */
function sparedBeside(
  observed: Observations,
  clients: readonly string[],
  servers: readonly string[],
): {
  readonly asked: number;
  readonly others: readonly string[];
  readonly othersAsked: number;
  readonly othersLost: number;
} | null {
  const counted = { asked: 0, lost: 0, othersAsked: 0, othersLost: 0 };
  const others: string[] = [];
  const [losers, wanted] = [new Set(clients), new Set(servers)];
  for (const { address, servers: theirs } of observed.clients.list)
    for (const [server, { asked, lost }] of theirs) {
      if (!wanted.has(server)) continue;
      if (losers.has(address)) {
        counted.asked += asked;
        counted.lost += lost;
      } else if (asked > 0) {
        counted.othersAsked += asked;
        counted.othersLost += lost;
        others.push(address);
      }
    }
  const { asked, lost, othersAsked, othersLost } = counted;
  const rate = lost / Math.max(1, asked);
  // If the loss rate were the same for all, the others would be expected to lose as many.
  return othersAsked * rate >= LOSS_EXPECTED && othersLost <= SPARED_SHARE * othersAsked * rate
    ? { asked, others, othersAsked, othersLost }
    : null;
}

/** A sentence if sockets lose all queries or none. Null if they lose some, or there are too few. */
function socketsText({ flows }: Observations, losses: readonly SeenExchange[]): string | null {
  const servers = new Set(losses.map(({ server }) => server.address));
  const clients = new Set(losses.map(({ client }) => client.address));
  const theirs = flows.list.filter(
    ({ client, server }) => servers.has(server) && clients.has(client),
  );
  const silent = theirs.filter(({ asked, lost }) => lost === asked);
  const fine = theirs.filter(({ lost }) => lost === 0);
  const repeated = silent.filter(({ asked }) => asked > 1);
  if (silent.length + fine.length < theirs.length) return null;
  if (repeated.length < 2 || fine.length === 0) return null;
  return `Losses depend on the socket. ${share(silent.length, theirs.length)} sockets got no reply to any query or repeat, and the others got replies to all their queries. If several DNS pods share the address, a dead pod looks like this.`;
}

/** The reason that there is no finding: few losses, or a known cause. */
function lossText({ total }: Observations, { explained }: Claims): string {
  if (explained.length === 0 || total.lost < LOSS_RARE * total.asked)
    return '(nearly) all queries are answered';
  return `${share(total.lost, total.asked)} queries got no reply, and other findings explain these losses`;
}

/** Queries from the first of these losses on, since earlier success shows nothing. */
function askedMeanwhile({ ways }: Observations, losses: readonly SeenExchange[]): number {
  const { fromMs } = sentSpan(losses);
  const { inside, outside } = ways.between(fromMs, Infinity);
  return inside.asked + outside.asked;
}

/**
 * True if these are the remainder of a known loss. They are far fewer, and for the same names or at
 * the same servers, at the same time.
 */
function isRest({ open, explained, names: known }: Claims): boolean {
  if (open.length > LOSS_REST * explained.length) return false;
  const names = new Set(explained.map(({ name }) => name));
  // Losses that depend on the name say nothing about other names at the same server.
  const servers = new Set(
    explained.filter(({ name }) => !known.has(name)).map(({ server }) => server.address),
  );
  const times = explained.map(({ sentMs }) => sentMs);
  const fromMs = times.reduce((least, ms) => Math.min(least, ms), Infinity) - LOSS_AROUND_MS;
  const toMs = times.reduce((most, ms) => Math.max(most, ms), -Infinity) + LOSS_AROUND_MS;
  return open.every(
    ({ name, server, sentMs }) =>
      sentMs >= fromMs && sentMs <= toMs && (names.has(name) || servers.has(server.address)),
  );
}
