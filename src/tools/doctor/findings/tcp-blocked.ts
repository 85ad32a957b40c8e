/**
 * Truncated replies, whose whole TCP would bring: connections that do not get through, and clients
 * that open none.
 */
import { failuresOf } from '../cluster/failed-checks.ts';
import { podAt } from '../cluster/facts.ts';
import type { Claims } from '../observe/claims.ts';
import type { ClientView } from '../observe/client-view.ts';
import type { Observations } from '../observe/observations.ts';
import {
  failsOften,
  type ConnectionPair,
  type OpenConnections,
} from '../observe/server-connections.ts';
import { isFailure } from '../observe/outcomes.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { answeredBetween } from '../observe/losses.ts';
import {
  excluded,
  unknown,
  type Finding,
  type FindingKind,
  type Verdict,
  clusterFinding,
  notAsked,
} from './finding.ts';
import { clock, fromTo, listed, sentence, share } from '../texts.ts';
import {
  MIN_CASES,
  MOST,
  RARE_SHARE,
  SPARED_SHARE,
  SURE_RESOLVER,
} from '../thresholds/evidence.ts';
import {
  MIN_LEAKED_CONNECTIONS,
  MIN_UNANSWERED_FIRST_PACKETS,
  TCP_PAIR_FAILS,
  TCP_PER_TRUNCATED,
  TCP_WAIT_MS,
} from '../thresholds/transport.ts';

const code = 'ND3011';
const title = 'Large answers cannot be fetched because DNS over TCP is blocked';

/**
 * A truncated reply has TC. TCP, over which the client would get the whole, is blocked or not used.
 */
export const tcpBlocked: FindingKind = {
  code,
  title,
  name: 'DNS over TCP that is blocked',
  inCapture(observed, claims) {
    const { truncated } = observed;
    const blocked = blockedPairs(observed);
    const silent = blocked.reduce((sum, pair) => sum + failed(pair), 0);
    const isSure = silent >= MIN_CASES || blocked.some(failsOften);
    const unserved = blocked.length === 0 ? leakOfUnserved(observed, claims) : null;
    if (unserved !== null) return unserved;
    if (truncated.length === 0 && !isSure && !isTcpAlone(observed))
      return unknown('no answer was too large for UDP');
    if (blocked.length > 0) {
      const keys = new Set(
        truncated.map(({ client, name, server }) => `${client.address} ${server.address} ${name}`),
      );
      const waiting = truncated.length > 0 ? [] : waitingForTcp(observed, blocked);
      // Failures and delays of these are expected.
      for (const { name, server } of waiting) {
        claims.names.add(name);
        claims.late.add(server.address);
      }
      claims.take(waiting);
      claims.take(
        claims.open.filter(
          ({ client, server, name, protocol }) =>
            protocol === 'tcp' || keys.has(`${client.address} ${server.address} ${name}`),
        ),
      );
      for (const { server } of blocked) claims.withoutTcp.add(server);
      const leak = leakTo(observed, failingSince(blocked));
      const finding = blockedBy(observed, blocked, waiting);
      const clients = blocked.map(({ client }) => client);
      if (leak !== null) return leaked(finding, observed, clients, leak);
      if (!blocked.every(worked)) return finding;
      return hasBacklog(observed, blocked)
        ? stopped(finding, observed, blocked)
        : blockedSince(finding, blocked);
    }
    const byClient = Map.groupBy(truncated, ({ client }) => client.address);
    const deaf = observed.clients.list.flatMap((client) => {
      const own = byClient.get(client.address) ?? [];
      const asked = observed.connections.of(client.address) + client.byTcp;
      return own.length > 0 && asked < TCP_PER_TRUNCATED * own.length ? [{ client, own }] : [];
    });
    const overTcp = observed.losses.filter(({ protocol }) => protocol === 'tcp');
    const unanswered = overTcp.length;
    const asked = observed.clients.list.reduce((sum, { byTcp }) => sum + byTcp, 0);
    if (unanswered >= MIN_CASES && unanswered === asked && observed.missingSegments === 0) {
      claims.take(overTcp);
      return notServed(observed, overTcp);
    }
    if (deaf.length === 0 && unanswered > 0)
      return unknown(`${acceptedText(observed)}, and ${unanswered} queries over TCP got no reply`);
    if (deaf.length === 0)
      return excluded(
        `${truncated.length} truncated answers, and TCP was answered: ${acceptedText(observed)}`,
      );
    const hasTcp = observed.connections.any || observed.clients.list.some(({ byTcp }) => byTcp > 0);
    // Some resolvers always retry. If these do not, the capture has no TCP.
    const odd = hasTcp ? deaf : deaf.filter(({ client }) => !alwaysAsks(client));
    if (odd.length === 0)
      return unknown(
        'answers were truncated, but the capture contains only UDP (capture port 53 over TCP as well)',
      );
    return neverAsked(observed, odd, hasTcp);
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const failed = failuresOf(answers, 'tcp');
    if (failed === null) return unknown('no server could be queried over TCP');
    if (failed.length === 0) return excluded('DNS pods and service answer over TCP');
    return clusterFinding(this, {
      severity: 'critical',
      confidence: 0.95,
      seen: failed
        .slice(0, 4)
        .map(
          ({ target, text }) =>
            `${podAt(facts, target)} answers over UDP, but a query over TCP failed: ${text}.`,
        ),
      affected: failed.map(({ target }) => podAt(facts, target)),
      why: 'An answer that does not fit into a packet has to be fetched over TCP. A network policy that allows UDP only, a firewall, or a Service without a TCP port prevents this. glibc waits more than a minute if packets vanish.',
      fix: [
        'Open TCP port 53 wherever UDP port 53 is open: in network policies, security groups and the Service (dns-tcp).',
      ],
      prove: `ndots query kubernetes.default.svc.${answers.plan.domain} @${failed[0]!.target} +tcp`,
      disproved: 'that query is answered when it is sent from a pod',
    });
  },
};

/** True if queries over TCP are lost, while the server answers over UDP. */
function isTcpAlone({ losses, flows }: Observations): boolean {
  const lost = losses.filter(({ protocol }) => protocol === 'tcp');
  return (
    lost.length >= MIN_CASES &&
    lost.some(({ server }) => flows.to(server.address).some((flow) => flow.asked > flow.lost))
  );
}

/** Clients and servers between which connections are not accepted. */
function blockedPairs(observed: Observations): readonly ConnectionPair[] {
  const { connections, lastMs, servers, backends, flows } = observed;
  const pairs = connections.at(lastMs);
  const failing = pairs.filter((pair) => {
    const { server, failedFromMs } = pair;
    if (failed(pair) === 0 || failed(pair) < TCP_PAIR_FAILS * (failed(pair) + meanwhile(pair)))
      return false;
    // A server that does not answer over UDP either is down, and TCP is not closed. (If all clients
    // use TCP, as a node cache does with force_tcp, that cannot be seen.)
    const isKnown = servers.get(server) !== undefined || backends.get(server) !== undefined;
    const isAskedByUdp =
      backends.get(server) !== undefined ||
      flows.to(server).some(({ lastMs: askedMs }) => askedMs >= failedFromMs);
    return !isKnown || !isAskedByUdp || answeredBetween(observed, server, failedFromMs, Infinity);
  });
  // A pair that fails once may be chance, but not a server or a client that never succeeds.
  const of = (name: string): number =>
    failing
      .filter(({ client, server }) => client === name || server === name)
      .reduce((sum, pair) => sum + failed(pair), 0);
  const all = pairs.reduce((sum, { opened }) => sum + opened, 0);
  const bad = failing.reduce((sum, pair) => sum + failed(pair), 0);
  if (bad >= RARE_SHARE * all) return failing;
  return failing.filter(
    (pair) => failsOften(pair) || of(pair.client) >= MIN_CASES || of(pair.server) >= MIN_CASES,
  );
}

/** Connections that were accepted while others were not. */
function meanwhile({ acceptedMs, failedFromMs, failedToMs }: ConnectionPair): number {
  return acceptedMs.filter((ms) => ms > failedFromMs && ms < failedToMs).length;
}

function failed({ refused, silent, late }: ConnectionPair): number {
  return refused + silent + late;
}

/** Queries without an answer, or with an error, while a forwarder tries only TCP and fails. */
function waitingForTcp(
  { affected, domains, names }: Observations,
  blocked: readonly ConnectionPair[],
): readonly SeenExchange[] {
  const fromMs = blocked.reduce((least, each) => Math.min(least, each.failedFromMs), Infinity);
  const toMs = blocked.reduce((most, each) => Math.max(most, each.failedToMs), 0);
  const all = affected.flatMap(({ exchanges }) =>
    exchanges.filter(
      ({ sentMs }) => sentMs >= fromMs - TCP_WAIT_MS.before && sentMs <= toMs + TCP_WAIT_MS.after,
    ),
  );
  const fails = (each: SeenExchange): boolean => isLost(each) || isFailure(each);
  const failed = all.filter(fails);
  // A node cache may have another upstream for external names.
  const isOwn = failed.every(({ name }) => domains.isOfCluster(name));
  const beganMs = failed.reduce((least, { sentMs }) => Math.min(least, sentMs), Infinity);
  const within = isOwn
    ? all.filter(({ name, sentMs }) => domains.isOfCluster(name) && sentMs >= beganMs)
    : all;
  if (failed.length >= MOST * within.length) return failed;
  // It has earlier answers in memory.
  const asked = within.filter(({ name, type }) => {
    const view = names.get(name, type);
    return view === undefined || Math.min(view.firstFoundMs, view.firstNegativeMs) >= fromMs;
  });
  const inVain = asked.filter(fails).length;
  return inVain >= MIN_CASES && inVain >= MOST * asked.length ? failed : [];
}

function blockedBy(
  { truncated, missingFragments, incomplete }: Observations,
  blocked: readonly ConnectionPair[],
  waiting: readonly SeenExchange[],
): Finding {
  const refused = blocked.reduce((sum, pair) => sum + pair.refused, 0);
  const silent = blocked.reduce((sum, pair) => sum + pair.silent + pair.late, 0);
  const opened = refused + silent + blocked.reduce((sum, pair) => sum + meanwhile(pair), 0);
  const late = blocked.reduce((sum, pair) => sum + pair.late, 0);
  const repeats = blocked.reduce((sum, pair) => sum + pair.unanswered, 0);
  const later = blocked.some(({ accepted, late }) => accepted + late > 0);
  const fromMs = blocked.reduce((least, each) => Math.min(least, each.failedFromMs), Infinity);
  const toMs = blocked.reduce((most, each) => Math.max(most, each.failedToMs), 0);
  const when = later ? ` ${fromTo(fromMs, toMs)}` : '';
  const clients = new Set(blocked.map(({ client }) => client));
  const hit = truncated.filter(({ client }) => clients.has(client.address));
  const exchanges = waiting.length > 0 ? waiting : hit.length > 0 ? hit : truncated;
  const servers = [...new Set(blocked.map(({ server }) => server))];
  return {
    code,
    title: truncated.length === 0 ? 'DNS over TCP does not get through' : title,
    severity: 'critical',
    confidence: 0.95,
    // TCP is the fallback for replies whose fragments are lost.
    ...(missingFragments + incomplete.size >= MIN_CASES && { after: ['ND3012'] }),
    seen: [
      ...(truncated.length === 0 ? [] : [tooLarge(truncated)]),
      `${share(refused + silent, opened)} of the TCP connections that ${listed([...clients])} opened to ${listed(servers)}${when} were ${silent === 0 ? 'refused' : refused === 0 ? 'not answered' : 'refused or not answered'}${late === 0 ? '' : `; ${late} of them succeeded afterwards`}.`,
      ...(repeats < MIN_UNANSWERED_FIRST_PACKETS
        ? []
        : [`The clients sent ${repeats} first packets (SYN) without an answer, repeats included.`]),
      ...(waiting.length === 0
        ? []
        : [`During this time, ${waiting.length} client queries got an error or no reply.`]),
    ],
    why:
      truncated.length === 0
        ? 'A client uses only TCP (options use-vc in resolv.conf, or force_tcp in a forwarder such as NodeLocal DNSCache), but TCP port 53 is blocked. A network policy allows only UDP, a firewall drops TCP, or the server does not listen there. The client’s lookups fail, and a forwarder answers SERVFAIL or not at all.'
        : 'A truncated answer has to be fetched again over TCP, but TCP port 53 is blocked. A network policy allows only UDP, a firewall drops TCP, or the server does not listen there. glibc waits more than a minute if the packets are dropped, while a refused connection fails at once.',
    fix: [
      `Open TCP port 53 to ${listed(servers)} wherever UDP port 53 is open (network policies, firewalls, security groups).`,
      truncated.length === 0
        ? 'Until then, remove use-vc from the pod’s dnsConfig, or force_tcp from forward, so that queries use UDP.'
        : 'To make answers smaller, use a normal Service instead of a headless one, or fewer endpoints.',
    ],
    prove: `ndots query ${exchanges[0]?.name ?? 'kubernetes.default.svc.cluster.local.'} @${servers[0]} +tcp`,
    disproved: 'that query is answered from the client’s network',
    exchanges,
    ...(exchanges.length === 0 && { affected: [...clients] }),
  };
}

/** True if the client's connections were accepted before they were not. */
function worked({ acceptedMs, failedFromMs, refused }: ConnectionPair): boolean {
  return refused === 0 && acceptedMs.filter((ms) => ms < failedFromMs).length >= MIN_CASES;
}

/**
 * True if connections were accepted whose queries got no reply. A server that has used up its connections still accepts
 * a few, which its kernel queues (the backlog). A rule drops first packets, or those of every connection.
 */
function hasBacklog(
  { losses, connections }: Observations,
  blocked: readonly ConnectionPair[],
): boolean {
  const servers = new Set(blocked.map(({ server }) => server));
  const reused = new Set(connections.reused.lost.map(({ exchange }) => exchange));
  const fresh = losses.filter(
    (loss) =>
      loss.protocol === 'tcp' &&
      !reused.has(loss) &&
      [loss.server, ...loss.hops.map(({ server }) => server)].some(({ address }) =>
        servers.has(address),
      ),
  );
  return fresh.length >= MIN_CASES;
}

/** Queries over accepted connections, by server, if (nearly) none has got a reply since the first of them. */
function unservedQueries(observed: Observations): ReadonlyMap<string, readonly SeenExchange[]> {
  const pairs = observed.connections.at(observed.lastMs);
  const reused = new Set(observed.connections.reused.lost.map(({ exchange }) => exchange));
  const lost = observed.losses
    .filter((each) => each.protocol === 'tcp' && !reused.has(each))
    .toSorted((one, other) => one.sentMs - other.sentMs);
  const byServer = Map.groupBy(lost, ({ server }) => server.address);
  return new Map(
    [...byServer].filter(([server, own]) => {
      const accepted = pairs
        .filter((pair) => pair.server === server)
        .flatMap(({ acceptedMs }) => acceptedMs.filter((ms) => ms >= own[0]!.sentMs));
      return own.length >= MIN_CASES && own.length >= MOST * accepted.length;
    }),
  );
}

/** The time since which connections to each server are not answered. */
function failingSince(blocked: readonly ConnectionPair[]): ReadonlyMap<string, number> {
  const since = new Map(
    blocked.filter(({ refused }) => refused === 0).map((pair) => [pair.server, pair.failedFromMs]),
  );
  for (const { server, failedFromMs } of blocked)
    if (failedFromMs < (since.get(server) ?? -Infinity)) since.set(server, failedFromMs);
  return since;
}

/**
 * The client with the most connections that were never closed, when others began to fail; null: none has many.
 * @param since the time, by server
 */
function leakTo(
  { connections }: Observations,
  since: ReadonlyMap<string, number>,
): OpenConnections | null {
  const [most] = connections.open
    .map((each) => ({
      ...each,
      sinceMs: each.sinceMs.filter((ms) => ms < (since.get(each.server) ?? -Infinity)),
    }))
    .toSorted((one, other) => other.sinceMs.length - one.sinceMs.length);
  return most !== undefined &&
    most.sinceMs.length >= MIN_LEAKED_CONNECTIONS &&
    most.closed <= SPARED_SHARE * most.sinceMs.length
    ? most
    : null;
}

/** A leak that leaves accepted connections of its own and of other clients without replies. */
function leakOfUnserved(observed: Observations, claims: Claims): Finding | null {
  const unserved = unservedQueries(observed);
  const since = new Map([...unserved].map(([server, [first]]) => [server, first!.sentMs]));
  const leak = leakTo(observed, since);
  if (leak === null) return null;
  const queries = unserved.get(leak.server)!;
  claims.take(queries);
  claims.withoutTcp.add(leak.server);
  const clients = queries.map(({ client }) => client.address);
  return leaked(notServed(observed, queries), observed, clients, leak);
}

/** A client's open connections use up those that the server accepts. */
function leaked(
  finding: Finding,
  { truncated }: Observations,
  clients: readonly string[],
  { client, server, sinceMs }: OpenConnections,
): Finding {
  const others = [...new Set(clients)].filter((each) => each !== client);
  return {
    ...finding,
    title: 'A client never closes its TCP connections to a DNS server, so the server has none left',
    confidence: 0.92,
    seen: [
      `${client} opened ${sinceMs.length} TCP connections to ${server} ${fromTo(sinceMs[0]!, sinceMs.at(-1)!)}, and neither side has closed one of them. Before these, TCP was answered.`,
      ...finding.seen,
    ],
    why: `${client} opens a new connection for each lookup and never closes it. A server accepts a limited number of TCP connections (20 in dnsmasq). When they are used up, it leaves later ones unanswered, ${others.length === 0 ? 'those of this client and of all others' : `those of ${listed(others)}, too`}. TCP port 53 is not blocked.${truncated.length === 0 ? '' : ' A truncated answer has to be fetched over TCP, so its lookups fail.'}`,
    fix: [
      `Restart the program on ${client}, which closes its connections, and correct it: one connection can carry all its queries, and has to be closed when it is idle.`,
      `Limit the connections per client in front of ${server}, or raise the server’s limit (max-tcp-connections in dnsmasq, incoming-num-tcp in Unbound, tcp-clients in BIND) and shorten its idle timeout.`,
      ...finding.fix.slice(1),
    ],
    prove: `on the server’s host, ss -tn state established sport = :53 lists the connections of ${client}`,
    disproved: `TCP is still unanswered after ${client} has been restarted`,
  };
}

/** Says until when TCP worked for the same clients. */
function workedText(blocked: readonly ConnectionPair[]): {
  readonly text: string;
  readonly fromMs: number;
  readonly servers: string;
} {
  const servers = listed([...new Set(blocked.map(({ server }) => server))]);
  const fromMs = Math.min(...blocked.map((pair) => pair.failedFromMs));
  const before = blocked.reduce(
    (sum, { acceptedMs, failedFromMs }) =>
      sum + acceptedMs.filter((ms) => ms < failedFromMs).length,
    0,
  );
  const text = `Until ${clock(fromMs)}, ${servers} accepted ${before} TCP connections from the same clients.`;
  return { text, fromMs, servers };
}

/** TCP worked for the same clients before, and first packets have been dropped since. */
function blockedSince(finding: Finding, blocked: readonly ConnectionPair[]): Finding {
  const { text, fromMs } = workedText(blocked);
  return {
    ...finding,
    confidence: 0.9,
    seen: [text, ...finding.seen],
    why: `${finding.why} The rule came into effect at about ${clock(fromMs)}. If no rule was changed then, all TCP connections that the server accepts may be in use, often by one client that never closes its own (ss -tn state established sport = :53 on the server’s host).`,
  };
}

/** TCP worked for the same clients before, and then connections were accepted but not served. */
function stopped(
  finding: Finding,
  observed: Observations,
  blocked: readonly ConnectionPair[],
): Finding {
  const { truncated } = observed;
  const { text, fromMs, servers } = workedText(blocked);
  return {
    ...finding,
    title:
      truncated.length === 0
        ? 'DNS over TCP stopped working during the capture'
        : 'Large answers can no longer be fetched because DNS over TCP stopped working',
    confidence: 0.85,
    seen: [
      text,
      'At first, connections were accepted, but their queries got no reply.',
      ...finding.seen,
    ],
    why: `TCP port 53 of ${servers} was open to these clients before, so it is not closed in general. Either all TCP connections that the server accepts are in use, often by one client that never closes its own, and the server leaves new ones unanswered. Or a network policy or firewall rule that drops TCP came into effect at that time. glibc waits more than a minute if the packets are dropped.`,
    fix: [
      `On the server’s host, count the open connections by client (ss -tn state established sport = :53). If one client has many, restart and correct it. Compare their number with the server’s limit (max-tcp-connections in dnsmasq, 20 by default).`,
      `If there are few, look for a network policy or firewall rule for TCP port 53 that was changed at about ${clock(fromMs)}.`,
      ...finding.fix.slice(1),
    ],
    disproved: `a capture at ${servers} shows that these packets do not arrive (then something in between drops them)`,
  };
}

/** Connections are accepted, but no query over them is answered. */
function notServed({ truncated }: Observations, losses: readonly SeenExchange[]): Finding {
  const servers = [...new Set(losses.map(({ server }) => server.address))];
  return {
    code,
    title: 'Large answers cannot be fetched because queries over TCP get no reply',
    severity: 'critical',
    confidence: 0.75,
    seen: [
      ...(truncated.length === 0 ? [] : [tooLarge(truncated)]),
      `${losses.length} of ${losses.length} queries over TCP to ${listed(servers)} got no reply. The connections were accepted, but no segment of an answer arrived.`,
    ],
    why: 'Connections are accepted but not answered. All the server’s TCP threads or connections are in use, or a proxy or load balancer in front of it has no backend for TCP. If all these answers fill a packet, a link that drops large packets looks the same (ND3012).',
    fix: [
      `Query the server directly with ndots query ${losses[0]!.name} @ENDPOINT +tcp, bypassing any load balancer.`,
      'Compare its open connections with its limit (ss -tn state established sport = :53 on its host; max-tcp-connections in its configuration).',
    ],
    prove: `ndots query kubernetes.default.svc.cluster.local @${servers[0]} +tcp shows that a short answer does not arrive either`,
    disproved: 'short answers arrive over TCP (then large packets are lost in transit, ND3012)',
    exchanges: losses,
  };
}

interface Deaf {
  readonly client: ClientView;
  readonly own: readonly SeenExchange[];
}

function neverAsked(
  { truncated, others }: Observations,
  deaf: readonly Deaf[],
  hasTcp: boolean,
): Verdict {
  const exchanges = deaf.flatMap(({ own }) => own);
  // Old musl takes the records that have come: then nothing fails.
  const fails = deaf.some(
    ({ client, own }) =>
      kindOf(client) === 'evdns' ||
      (own.length > 1 &&
        own.every(({ answers }) => answers === 0) &&
        (hasTcp || kindOf(client) === 'musl')),
  );
  // Nothing shows that TCP would be in the capture.
  if (!hasTcp && !fails && others.opened === 0)
    return withoutTcp(
      truncated,
      exchanges,
      'The capture contains no TCP at all, so it was taken for UDP only, or no TCP reaches this point.',
    );
  // A capture at a DNS pod does not contain first packets that are dropped before it.
  if (hasTcp && !deaf.every(isSeenWhole)) {
    const clients = listed(
      deaf.map(({ client, own }) => `${client.address} (${own.length} of them)`),
    );
    return {
      ...withoutTcp(
        truncated,
        exchanges,
        `No TCP from ${clients} passed this point, while others retried over TCP and were answered here.`,
      ),
      severity: fails ? 'critical' : 'warning',
    };
  }
  return {
    code,
    title: 'Large answers are incomplete because a client does not retry over TCP',
    severity: fails ? 'critical' : deaf.every(isContent) ? 'info' : 'warning',
    confidence: hasTcp ? 0.9 : fails ? 0.75 : 0.6,
    seen: [
      tooLarge(truncated),
      `${listed(deaf.map(({ client, own }) => `${client.address} (${own.length} of them)`))} never retried over TCP${hasTcp ? ', while others did' : `, and the capture contains ${others.opened > 0 ? 'no DNS over TCP' : 'no TCP at all'}`}.`,
    ],
    why: 'A truncated answer has to be fetched again over TCP, which some resolvers cannot do. evdns (PgBouncer, Tor …) fails, while musl before 1.2.4 (Alpine before 3.18) and busybox use the part that arrived.',
    fix: [
      'Use a newer base image (musl 1.2.4, Alpine 3.18), or PgBouncer built with c-ares.',
      'To make answers smaller, use a normal Service instead of a headless one, or fewer endpoints.',
    ],
    prove: `ndots query ${exchanges[0]!.name} @${exchanges[0]!.server.address} +tcp is answered, but the program still fails`,
    disproved: hasTcp
      ? 'the program has a connection to the server that was opened before the capture began'
      : 'the capture filter allowed only UDP',
    exchanges,
  };
}

/** True if the client is of a kind that uses the records that arrived, and some always did. */
function isContent({ client, own }: Deaf): boolean {
  return kindOf(client) === 'musl' && own.every(({ answers }) => answers > 0);
}

/**
 * True if the capture shows that this client does not use TCP: its resolver is known for that, or its
 * queries are seen both before and after the address translation, so its connections would be, too.
 */
function isSeenWhole({ client, own }: Deaf): boolean {
  const isKnown = ['evdns', 'musl'].includes(kindOf(client));
  return isKnown || (!alwaysAsks(client) && own.some(({ hops }) => hops.length > 0));
}

/** The capture may have a filter, or TCP ends before it, or the clients do not use it. */
function withoutTcp(
  truncated: readonly SeenExchange[],
  exchanges: readonly SeenExchange[],
  seen: string,
): Finding {
  const { name, server } = exchanges[0]!;
  return {
    code,
    title: 'Answers are truncated, but the capture does not show whether TCP works',
    severity: 'warning',
    confidence: 0.6,
    seen: [tooLarge(truncated), seen],
    why: 'A truncated answer has to be fetched again over TCP. If TCP port 53 is blocked before this point (a network policy or firewall that allows only UDP), the lookups hang or fail. If the clients do not use TCP (evdns, musl before 1.2.4), they fail or use the part that arrived.',
    fix: [
      'Capture in the client’s pod with TCP (tcpdump port 53, without udp) to see which of these it is.',
      `Open TCP port 53 to ${server.address} wherever UDP port 53 is open.`,
      'To make answers smaller, use a normal Service instead of a headless one, or fewer endpoints.',
    ],
    prove: `ndots query ${name} @${server.address} +tcp in the client’s pod gets no answer if TCP is blocked`,
    disproved: 'that query is answered, and the clients get the whole answer',
    exchanges,
  };
}

function tooLarge(truncated: readonly SeenExchange[]): string {
  const names = [...new Set(truncated.map(({ name }) => name))];
  return sentence(`${truncated.length} answers were too large for UDP (TC): ${listed(names)}`);
}

function kindOf({ recognition }: ClientView): string {
  const best = recognition.best;
  return best !== null && best.either >= SURE_RESOLVER ? best.kind : '';
}

/** glibc, Go and c-ares retry truncated answers over TCP. */
function alwaysAsks(client: ClientView): boolean {
  return ['glibc', 'go', 'c-ares'].includes(kindOf(client));
}

function acceptedText({ connections, lastMs }: Observations): string {
  const pairs = connections.at(lastMs);
  const accepted = pairs.reduce((sum, pair) => sum + pair.accepted, 0);
  return `${share(accepted, accepted + pairs.reduce((sum, pair) => sum + failed(pair), 0))} connections were accepted at once`;
}
