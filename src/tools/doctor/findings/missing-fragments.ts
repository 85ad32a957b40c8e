/** Large replies that are lost while small ones arrive. */
import { isCut } from '../../capture/pair/message-head.ts';
import { failuresOf } from '../cluster/failed-checks.ts';
import { podAt } from '../cluster/facts.ts';
import type { Observations } from '../observe/observations.ts';
import {
  bytesOf,
  needsFragments,
  UDP_BYTES,
  type SeenExchange,
} from '../../capture/pair/seen-exchange.ts';
import { deadNames } from '../observe/dead-names.ts';
import { excluded, unknown, type FindingKind, type OptionalText, notAsked } from './finding.ts';
import { typeName } from '../../../server/wire/iana.ts';
import { listed, share, tally } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { queriesFor, longReplies } from '../observe/long-replies.ts';
import type { RepeatedQuery } from '../observe/asked-again.ts';
import type { StuckSegment } from '../observe/stuck-connections.ts';
import { MAX_CHANCE, MIN_CASES, MOST, UNFRAGMENTED_BYTES } from '../thresholds/evidence.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import {
  LARGE_BY_TCP_SHARE,
  MIN_LARGE_LOSSES,
  STUCK_CONNECTIONS,
} from '../thresholds/transport.ts';

export const missingFragments: FindingKind = {
  code: 'ND3012',
  title: 'Large replies are lost in transit because of dropped fragments or a wrong MTU',
  name: 'lost fragments or a wrong MTU',
  inCapture(observed, claims) {
    const facts = factsOf(observed, claims);
    const { missing, tooBig, incomplete, large, byTcp, gapped, stuck, repeated, long, theirs } =
      facts;
    if (missing + tooBig + incomplete + stuck.length === 0 && theirs.length === 0)
      return large.length > 0
        ? excluded('no fragment is missing, no packet was too big, and short replies are also lost')
        : unknown('no large reply was requested');
    takeLost(observed, claims, facts);
    const exchanges = exchangesOf(observed, facts);
    const [example] = exchanges.filter(({ name }) => !isCut(name));
    const question =
      example === undefined
        ? 'NAME TXT'
        : `${example.name} ${typeName(example.type)} @${example.server.address}`;
    return {
      severity:
        theirs.length > 0 ||
        incomplete + repeated.length >= MIN_CASES ||
        (claims.withoutTcp.size > 0 && missing >= MIN_CASES) ||
        stuck.length >= STUCK_CONNECTIONS
          ? 'critical'
          : 'warning',
      confidence: incomplete > 0 ? 0.95 : theirs.length + stuck.length > 0 ? 0.9 : 0.7,
      seen: seenOf(observed, claims, facts),
      why:
        long !== null && long.limit <= UDP_BYTES
          ? tooLongByUdp
          : missing + incomplete > 0
            ? 'The client allows replies larger than one packet (an overlay takes up 50 bytes or more), so they are fragmented. A firewall or the overlay drops the fragments. The client waits until it times out, although the server answered.'
            : 'The client allows replies larger than a link’s packet size (an overlay takes up 50 bytes or more). If the hosts do not know the limit, such packets are dropped. If they are fragmented, a firewall may drop the fragments. The client waits until it times out, although the server answered.',
      fix: [
        long !== null &&
          long.limit <= UDP_BYTES &&
          `Find the firewall that limits the length of DNS replies (“message-length maximum ${UDP_BYTES}”), and make it allow 1232 bytes. Until then, set bufsize ${UDP_BYTES}.`,
        'Limit UDP answers to 1232 bytes and send the rest over TCP: set bufsize 1232 in the Corefile (CoreDNS’s and the node-local cache’s), and open TCP port 53 everywhere.',
        'Set the pod network’s MTU to the link’s MTU minus the overlay’s header.',
        byTcp.length + gapped.length + stuck.length > 0 &&
          'Until then, clamp TCP segments to the path MTU (iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu), and allow ICMP “too big”.',
      ],
      prove: `run ndots query ${question} +bufsize=4096, then the same with +bufsize=1232 (only the second gets an answer, over TCP), and ping -M do -s 1400 between pods on two nodes`,
      disproved: 'replies of 4096 bytes arrive between the same two hosts',
      ...(theirs.length + repeated.length === 0 && incomplete > 0
        ? { counted: byHost(observed) }
        : {}),
      exchanges,
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const sizes = [512, UNFRAGMENTED_BYTES, 4096];
    const asked = sizes.flatMap((size) => {
      const failed = failuresOf(answers, `edns-${size}`);
      return failed === null ? [] : [{ size, failed }];
    });
    const cut = failuresOf(answers, 'truncation');
    // Another finding covers blocked TCP.
    const tcp = failuresOf(answers, 'tcp') ?? [];
    const failed = [
      ...asked.flatMap((each) =>
        each.failed.map(({ target, text }) => ({ target, text: `EDNS ${each.size}: ${text}` })),
      ),
      ...(tcp.length > 0 ? [] : (cut ?? [])),
    ];
    if (asked.length === 0) return unknown('no server could be queried with EDNS');
    if (failed.length === 0)
      return cut === null
        ? unknown(
            'queries with EDNS are answered, but no name with an answer of more than 512 bytes is known',
          )
        : excluded('replies of all sizes arrive, and truncated ones arrive whole over TCP');
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: failed.slice(0, 4).map(({ target, text }) => `${podAt(facts, target)}: ${text}.`),
      affected: [...new Set(failed.map(({ target }) => podAt(facts, target)))],
      why: 'Between here and the server, packets above a certain size are lost, or something in transit does not support EDNS. It may be an overlay network with a smaller MTU, a firewall, a DNS proxy, or a server that sends more than the client accepts.',
      fix: [
        'Set bufsize 1232 in the Corefile to keep replies small enough for one packet.',
        'Set the overlay network’s MTU to the nodes’ MTU minus the overlay’s headers.',
      ],
      prove: `ndots query ${answers.plan.large ?? `kubernetes.default.svc.${answers.plan.domain}`} @${failed[0]!.target} +bufsize=4096, then the same with +bufsize=512`,
      disproved: 'both queries are answered',
    };
  },
};

interface LargeReplies {
  /** Replies of which fragments are missing. */
  readonly missing: number;
  /** Packets that were too big for a link (ICMP). */
  readonly tooBig: number;
  /** Clients that report missing fragments. */
  readonly incomplete: number;
  /** Lost queries that allow more than one packet. */
  readonly large: readonly SeenExchange[];
  /** Lost queries whose replies were too big for a link. */
  readonly outgrown: readonly SeenExchange[];
  readonly sized: readonly SeenExchange[];
  readonly byTcp: readonly SeenExchange[];
  /** Lost queries over TCP whose connections lack a segment. */
  readonly gapped: readonly SeenExchange[];
  readonly stuck: readonly StuckSegment[];
  readonly repeated: readonly RepeatedQuery[];
  readonly long: ReturnType<typeof longReplies>;
  /** All queries whose large replies were lost. */
  readonly theirs: readonly SeenExchange[];
}

function factsOf(observed: Observations, claims: Claims): LargeReplies {
  const { missingFragments: missing, tooBig } = observed;
  const incomplete = observed.incomplete.size;
  // An ICMP error about a packet that was too big quotes that packet.
  const outgrown = claims.open.filter(
    ({ client }) => observed.outgrown.get(`${client.address} ${client.port}`) === true,
  );
  // Clients that lost fragments had announced a size larger than one packet.
  const large = claims.open.filter(({ udpSize }) => udpSize > UNFRAGMENTED_BYTES);
  const losses = large.length > 0 ? large : claims.open.filter(({ udpSize }) => udpSize === 0);
  const guessed = missing >= MIN_LARGE_LOSSES * large.length && missing > 0 ? losses : [];
  const sized = largeOnes(observed, claims);
  const byTcp = largeByTcp(observed, claims);
  const gapped = lostSegments(observed, claims);
  const stuck = observed.stuckSegments.list;
  const repeated = repeatedByReporters(observed);
  const packets = [...new Set([...outgrown, ...guessed, ...sized, ...byTcp, ...gapped])];
  const long = packets.length === 0 ? longReplies(observed, claims) : null;
  const theirs = long?.losses ?? packets;
  return {
    missing,
    tooBig,
    incomplete,
    large,
    outgrown,
    sized,
    byTcp,
    gapped,
    stuck,
    repeated,
    long,
    theirs,
  };
}

function takeLost(
  observed: Observations,
  claims: Claims,
  { sized, byTcp, gapped, repeated, long, theirs }: LargeReplies,
): void {
  claims.take(theirs);
  claims.take(repeated.map(({ first }) => first));
  // Retransmitted segments arrive late, if at all.
  for (const { server } of gapped) claims.late.add(server.address);
  // No reply shows that these are large, but short ones that were queried in the same way were
  // answered.
  if (sized.length + byTcp.length > 0) claims.take(unsized(observed, claims, UNFRAGMENTED_BYTES));
  if (long !== null) {
    claims.take(unsized(observed, claims, UDP_BYTES));
    // Servers that wait for these replies fail in the end.
    for (const { name } of long.losses) claims.names.add(name);
  }
}

function exchangesOf(
  observed: Observations,
  { theirs, stuck, repeated }: LargeReplies,
): readonly SeenExchange[] {
  return theirs.length > 0
    ? theirs
    : stuck.length > 0
      ? behindStuck(observed, stuck)
      : (repeated.length > 0 ? repeated : observed.askedAgain.longAnew).flatMap(
          ({ first, again }) => [first, again],
        );
}

function seenOf(
  observed: Observations,
  claims: Claims,
  facts: LargeReplies,
): readonly OptionalText[] {
  const { missing, tooBig, incomplete, outgrown, sized, byTcp, gapped, stuck } = facts;
  const { repeated, long, theirs } = facts;
  return [
    missing > 0 && `Only some fragments of ${missing} replies arrived.`,
    incomplete > 0 && incompleteText(observed),
    repeated.length > 0 &&
      `These hosts repeated ${repeated.length} queries although replies of up to ${Math.max(...repeated.map(({ first }) => first.replyBytes))} bytes had passed this point, so the other fragments are lost after it.`,
    sized.length > 0 && sizeText(sized),
    long !== null && long.seen,
    byTcp.length > 0 &&
      `${byTcp.length} truncated queries were repeated over TCP. The connections were accepted, but no answers arrived.`,
    gapped.length > 0 &&
      `${gapped.length} queries over TCP (${listed(gapped.map(({ name }) => name))}) got no reply. Later segments of their connections arrived, but an earlier one never did, however often it was sent. Short segments get through.`,
    stuck.length > 0 && stuckText(observed, stuck),
    tooBig > 0 && `${tooBig} packets were too big for a link on the path (ICMP).`,
    claims.withoutTcp.size > 0 &&
      `${listed([...claims.withoutTcp])} cannot be reached over TCP either (ND3011), so retries with a smaller size and TCP fail, too.`,
    theirs.length > 0 &&
      `${share(theirs.length, observed.total.asked)} queries got no complete reply${outgrown.length > 0 ? `, and ${outgrown.length} of the replies were too big for a link` : ''}.`,
  ];
}

/**
 * Lost queries that allow replies of more bytes than this, and for whose names no answer was seen.
 * Empty if some with short answers are also lost.
 */
function unsized(
  { names }: Observations,
  { open }: Claims,
  bytes: number,
): readonly SeenExchange[] {
  const large = open.filter(({ udpSize }) => udpSize > bytes);
  const sizes = large.map(({ name, type }) => names.get(name, type)?.longest ?? 0);
  return sizes.some((size) => size > 0) ? [] : large;
}

/**
 * Queries over TCP for truncated answers, if (nearly) all got no reply while other TCP data
 * arrived. Full segments are then too big for a link.
 */
function largeByTcp(observed: Observations, { open }: Claims): readonly SeenExchange[] {
  const truncated = new Set(observed.truncated.map(({ name }) => name));
  const lost = open.filter(({ protocol, name }) => protocol === 'tcp' && truncated.has(name));
  const asked = observed.clients.list.reduce((sum, { byTcp }) => sum + byTcp, 0);
  const comes = observed.missingSegments > 0 || lost.length < asked;
  if (!comes) return [];
  if (lost.length >= MIN_CASES && lost.length >= MOST * asked) return lost;
  // Only the path to one server may be affected, while others answer over TCP.
  const accepting = new Set(
    observed.connections
      .at(observed.lastMs)
      .flatMap(({ server, opened, accepted }) => (accepted >= MOST * opened ? server : [])),
  );
  return [...Map.groupBy(lost, ({ server }) => server.address)].flatMap(([address, theirs]) => {
    const { asked: all, lost: none } = observed.servers.get(address)?.tcp ?? { asked: 0, lost: 0 };
    const isMuch = theirs.length >= MIN_CASES && theirs.length >= LARGE_BY_TCP_SHARE * all;
    // Short answers have to arrive, because a server that answers nothing over TCP is another cause.
    return isMuch && all > none && accepting.has(address) ? theirs : [];
  });
}

/**
 * Queries over TCP whose connections have a permanent gap, if they are most of the losses and
 * belong to several connections.
 */
function lostSegments({ gapped }: Observations, { open }: Claims): readonly SeenExchange[] {
  const lost = open.filter(
    ({ protocol, client }) => protocol === 'tcp' && gapped.has(`${client.address} ${client.port}`),
  );
  const sockets = new Set(lost.map(({ client }) => `${client.address} ${client.port}`));
  return sockets.size >= MIN_CASES && lost.length >= MOST * open.length ? lost : [];
}

const tooLongByUdp = `Something in transit treats UDP replies of more than ${UDP_BYTES} bytes as an attack and drops them, as firewalls without EDNS support (RFC 6891) do. Or a link accepts only smaller packets than the hosts assume. Clients without EDNS get a truncated answer, then the whole answer over TCP.`;

/**
 * Lost queries whose replies are larger than one packet, as seen in transit or at other clients.
 * Empty if replies of other sizes are also lost.
 */
function largeOnes(observed: Observations, { open }: Claims): readonly SeenExchange[] {
  const { names } = observed;
  // Zero if the client does not allow large replies.
  const sizeOf = ({ type, name, udpSize }: SeenExchange): number =>
    udpSize > UNFRAGMENTED_BYTES ? (names.get(name, type)?.longest ?? 0) : 0;
  const lost = open.filter((loss) => needsFragments(Math.max(bytesOf(loss), sizeOf(loss))));
  // A reply that is lost before it is seen has no size.
  const comparable = open.filter((loss) => sizeOf(loss) > 0);
  if (lost.length < MIN_CASES || lost.length < MOST * comparable.length) return [];
  const all = queriesFor(names.list);
  const large = queriesFor(names.list.filter(({ longest }) => needsFragments(longest)));
  const seen = lost.filter((loss) => needsFragments(bytesOf(loss)));
  // If most replies are large, it could be chance that only large ones are lost.
  return (large / all) ** lost.length < MAX_CHANCE ||
    seen.length >= MIN_CASES ||
    onlyLargeOnes(observed, lost)
    ? lost
    : [];
}

/**
 * True if, from some moment on, no name with large answers is answered, while names with small
 * ones are.
 */
function onlyLargeOnes(observed: Observations, lost: readonly SeenExchange[]): boolean {
  const large = new Set(
    observed.names.list.flatMap(({ name, longest }) => (needsFragments(longest) ? name : [])),
  );
  return deadNames(observed, lost).some(
    ({ answered, chanceOfThese }) =>
      chanceOfThese < UNLIKELY_DEAD && !answered.some((name) => large.has(name)),
  );
}

/** Truncated exchanges of the clients that TCP segments do not reach, which retry them over TCP. */
function behindStuck(
  { truncated }: Observations,
  stuck: readonly StuckSegment[],
): readonly SeenExchange[] {
  const clients = new Set(stuck.map(({ client }) => client));
  return truncated.filter(({ client }) => clients.has(client.address));
}

function stuckText(observed: Observations, stuck: readonly StuckSegment[]): string {
  const names = [...new Set(behindStuck(observed, stuck).map(({ name }) => name))];
  const least = Math.min(...stuck.map(({ bytes }) => bytes));
  const times = stuck.reduce((sum, each) => sum + each.times, 0);
  const about = names.length === 0 ? '' : ` (${listed(names)})`;
  return `On ${stuck.length} TCP ${stuck.length === 1 ? 'connection' : 'connections'} to ${listed(stuck.map(({ client }) => client))}, the server repeated segments of ${least} bytes or more ${times} times${about}. They passed this point each time, but the client never acknowledged them. Short packets, such as the handshake, got through.`;
}

/**
 * Queries with large replies that hosts repeat, of which the same hosts report (by ICMP) that fragments did not arrive.
 */
function repeatedByReporters({ askedAgain, incomplete }: Observations): readonly RepeatedQuery[] {
  if (incomplete.size === 0) return [];
  const hosts = byHost({ incomplete });
  const seen = new Set<SeenExchange>();
  return [...askedAgain.longRepeats, ...askedAgain.longAnew].filter(({ first, again }) => {
    if (seen.has(again) || !hosts.has(first.client.address)) return false;
    seen.add(again);
    return true;
  });
}

/** Replies without their later fragments, by the host that reported them. */
function byHost({ incomplete }: Pick<Observations, 'incomplete'>): ReadonlyMap<string, number> {
  return new Map(tally(incomplete.entries, ([socket]) => socket.split(' ')[0]!));
}

/** The ICMP errors of hosts that wait for fragments, and the names with replies of that size. */
function incompleteText({ incomplete, names }: Observations): string {
  const hosts = [...byHost({ incomplete }).keys()];
  const large = names.list.filter(({ longest }) => needsFragments(longest));
  const theirs =
    large.length === 0
      ? ''
      : `. The replies that need fragments are for ${listed(large.map(({ name }) => name))}`;
  return `${listed(hosts)} reported that only the first fragment of ${incomplete.size} replies arrived (ICMP fragment reassembly time exceeded)${theirs}`;
}

function sizeText(lost: readonly SeenExchange[]): string {
  const seen = lost.filter((loss) => needsFragments(bytesOf(loss)));
  const names = [...new Set(lost.map(({ name }) => name))];
  const byTcp = seen.some(({ protocol }) => protocol === 'tcp');
  return seen.length > 0
    ? `${seen.length} replies of up to ${Math.max(...seen.map(bytesOf))} bytes were seen in transit${byTcp ? ', some over TCP' : ''}, but did not reach the clients (${listed(names)}). Short replies arrive.`
    : `The unanswered queries (${listed(names)}) have answers larger than one packet, as seen when they do arrive. Queries with short answers were answered.`;
}
