/** DNS over TCP that is blocked or not used, so that truncated answers stay incomplete. */
import { failuresOf } from '../cluster/failed-checks.ts';
import { podAt } from '../cluster/facts.ts';
import {
  acceptedMeanwhile,
  blockedPairs,
  hasBacklog,
  waitingForTcp,
  worked,
  isAway,
  isServedAgain,
} from '../observe/blocked-pairs.ts';
import type { Claims } from '../observe/claims.ts';
import { leakBefore, leakTexts, unservedLeak } from '../observe/leaked-connections.ts';
import type { Observations } from '../observe/observations.ts';
import {
  failedOf,
  failsOften,
  type ConnectionPair,
  type OpenConnections,
} from '../observe/server-connections.ts';
import {
  alwaysRetries,
  failsWithoutTcp,
  isSeenWithoutTcp,
  udpOnlyClients,
  usesPartialAnswers,
  type UdpOnlyClient,
} from '../observe/udp-only-clients.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import {
  excluded,
  unknown,
  type FoundCause,
  type FindingKind,
  type Verdict,
  notAsked,
} from './finding.ts';
import { clock, fromTo, listed, sentence, share } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MIN_UNANSWERED_FIRST_PACKETS } from '../thresholds/transport.ts';

/** Connections are not accepted or not served, or clients open none after a truncated reply (TC). */
export const tcpBlocked: FindingKind = {
  code: 'ND3011',
  title: 'Large answers cannot be fetched because DNS over TCP is blocked',
  name: 'DNS over TCP that is blocked',
  inCapture(observed, claims) {
    const { truncated } = observed;
    const blocked = blockedPairs(observed);
    const silent = blocked.reduce((sum, pair) => sum + failedOf(pair), 0);
    const isSure = silent >= MIN_CASES || blocked.some(failsOften);
    const unserved = blocked.length === 0 ? unservedLeak(observed) : null;
    if (unserved !== null) {
      const { leak, queries } = unserved;
      claims.take(queries);
      claims.withoutTcp.add(leak.server);
      const clients = queries.map(({ client }) => client.address);
      return leaked(notServed(observed, queries), observed, clients, leak);
    }
    if (truncated.length === 0 && !isSure && !isTcpAlone(observed))
      return unknown('no answer was too large for UDP');
    if (blocked.length > 0) return takeBlocked(observed, claims, blocked);
    const udpOnly = udpOnlyClients(observed);
    const overTcp = observed.losses.filter(({ protocol }) => protocol === 'tcp');
    const unanswered = overTcp.length;
    const asked = observed.clients.list.reduce((sum, { byTcp }) => sum + byTcp, 0);
    if (unanswered >= MIN_CASES && unanswered === asked && observed.missingSegments === 0) {
      claims.take(overTcp);
      return notServed(observed, overTcp);
    }
    if (udpOnly.length === 0 && unanswered > 0)
      return unknown(`${acceptedText(observed)}, and ${unanswered} queries over TCP got no reply`);
    if (udpOnly.length === 0)
      return excluded(
        `${truncated.length} truncated answers, and TCP was answered: ${acceptedText(observed)}`,
      );
    const hasTcp = observed.connections.any || observed.clients.list.some(({ byTcp }) => byTcp > 0);
    // Some resolvers always retry. If these do not, the capture has no TCP.
    const odd = hasTcp ? udpOnly : udpOnly.filter((each) => !alwaysRetries(each));
    if (odd.length === 0)
      return unknown(
        'answers were truncated, but the capture contains only UDP (capture port 53 over TCP as well)',
      );
    return neverRetried(observed, odd, hasTcp);
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const failed = failuresOf(answers, 'tcp');
    if (failed === null) return unknown('no server could be queried over TCP');
    if (failed.length === 0) return excluded('DNS pods and service answer over TCP');
    return {
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
    };
  },
};

/** Takes the losses that the blocked connections explain, and tells when TCP worked. */
function takeBlocked(
  observed: Observations,
  claims: Claims,
  blocked: readonly ConnectionPair[],
): FoundCause {
  const { truncated } = observed;
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
  const leak = leakBefore(observed, blocked);
  const finding = blockedBy(observed, blocked, waiting);
  const clients = blocked.map(({ client }) => client);
  if (leak !== null) return leaked(finding, observed, clients, leak);
  if (!blocked.every(worked)) return finding;
  if (blocked.every(isServedAgain))
    return blocked.every(isAway) ? forATime(finding, observed, blocked) : finding;
  return hasBacklog(observed, blocked)
    ? stopped(finding, observed, blocked)
    : blockedSince(finding, blocked);
}

/** True if queries over TCP are lost, while the server answers over UDP. */
function isTcpAlone({ losses, flows }: Observations): boolean {
  const lost = losses.filter(({ protocol }) => protocol === 'tcp');
  return (
    lost.length >= MIN_CASES &&
    lost.some(({ server }) => flows.to(server.address).some((flow) => flow.asked > flow.lost))
  );
}

function blockedBy(
  { truncated, missingFragments, incomplete, domains }: Observations,
  blocked: readonly ConnectionPair[],
  waiting: readonly SeenExchange[],
): FoundCause {
  const refused = blocked.reduce((sum, pair) => sum + pair.refused, 0);
  const silent = blocked.reduce((sum, pair) => sum + pair.silent + pair.late, 0);
  const opened = refused + silent + blocked.reduce((sum, pair) => sum + acceptedMeanwhile(pair), 0);
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
    ...(truncated.length === 0 && { title: 'DNS over TCP does not get through' }),
    severity: 'critical',
    confidence: 0.95,
    // TCP is the fallback for replies whose fragments are lost.
    ...(missingFragments + incomplete.size >= MIN_CASES && { after: ['ND3012'] }),
    seen: [
      truncated.length > 0 && tooLarge(truncated),
      `${share(refused + silent, opened)} of the TCP connections that ${listed([...clients])} opened to ${listed(servers)}${when} were ${silent === 0 ? 'refused' : refused === 0 ? 'not answered' : 'refused or not answered'}${late === 0 ? '' : `; ${late} of them succeeded afterwards`}.`,
      repeats >= MIN_UNANSWERED_FIRST_PACKETS &&
        `The clients sent ${repeats} first packets (SYN) without an answer, repeats included.`,
      waiting.length > 0 &&
        `During this time, ${waiting.length} client queries got an error or no reply.`,
    ],
    why:
      truncated.length === 0
        ? 'A client uses only TCP (options use-vc in resolv.conf, or force_tcp in a forwarder such as NodeLocal DNSCache), but TCP port 53 is blocked. A network policy allows only UDP, a firewall drops TCP, or the server does not listen there. The client’s lookups fail, and a forwarder answers SERVFAIL or not at all.'
        : 'A truncated answer has to be fetched again over TCP, but TCP port 53 is blocked. A network policy allows only UDP, a firewall drops TCP, or the server does not listen there. glibc waits more than a minute if the packets are dropped, while a refused connection fails at once.',
    fix: [
      `Open TCP port 53 to ${listed(servers)} wherever UDP port 53 is open (network policies, firewalls, security groups).`,
      truncated.length === 0
        ? 'Until then, remove use-vc from the pod’s dnsConfig, or force_tcp from forward, so that queries use UDP.'
        : smaller(truncated, domains),
    ],
    prove: `ndots query ${exchanges[0]?.name ?? 'kubernetes.default.svc.cluster.local.'} @${servers[0]} +tcp`,
    disproved: 'that query is answered from the client’s network',
    exchanges,
    ...(exchanges.length === 0 && { affected: [...clients] }),
  };
}

/** A client's open connections use up those that the server accepts. */
function leaked(
  finding: FoundCause,
  observed: Observations,
  clients: readonly string[],
  leak: OpenConnections,
): FoundCause {
  const texts = leakTexts(leak, observed, clients);
  return {
    ...finding,
    ...texts,
    confidence: 0.92,
    seen: [texts.seen, ...finding.seen],
    fix: [...texts.fix, ...finding.fix.slice(1)],
  };
}

/** Describes until when TCP worked for the same clients. */
function workedText(blocked: readonly ConnectionPair[]): {
  readonly text: string;
  readonly fromMs: number;
  readonly servers: string;
} {
  const servers = listed(blocked.map(({ server }) => server));
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
function blockedSince(finding: FoundCause, blocked: readonly ConnectionPair[]): FoundCause {
  const { text, fromMs } = workedText(blocked);
  return {
    ...finding,
    confidence: 0.9,
    seen: [text, ...finding.seen],
    why: `${finding.why} The rule came into effect at about ${clock(fromMs)}. If no rule was changed then, all TCP connections that the server accepts may be in use, often by one client that never closes its own (ss -tn state established sport = :53 on the server’s host).`,
  };
}

/** TCP worked for the same clients before and afterwards. */
function forATime(
  finding: FoundCause,
  { truncated }: Observations,
  blocked: readonly ConnectionPair[],
): FoundCause {
  const { text, servers } = workedText(blocked);
  const toMs = blocked.reduce((most, each) => Math.max(most, each.failedToMs), -Infinity);
  const again = blocked.reduce(
    (sum, { acceptedMs, failedToMs }) => sum + acceptedMs.filter((ms) => ms > failedToMs).length,
    0,
  );
  return {
    ...finding,
    title: 'DNS over TCP was not answered for a time',
    severity: truncated.length === 0 && finding.exchanges?.length === 0 ? 'warning' : 'critical',
    confidence: 0.8,
    seen: [
      text,
      ...finding.seen,
      `After ${clock(toMs)}, ${again} connections from these clients were accepted.`,
    ],
    why: `${servers}, or the path to it, was away for a time, as when a DNS pod restarts or a node fails. TCP port 53 is not blocked, since connections were accepted before and afterwards.`,
    fix: [
      `Check what restarted or failed at ${clock(toMs)} (kubectl -n kube-system get pods, kubectl get events -A). During an update, lameduck in the Corefile’s health plugin keeps DNS pods answering until they are no longer used.`,
    ],
    disproved: 'connections are still not answered',
  };
}

/** TCP worked for the same clients before, and then connections were accepted but not served. */
function stopped(
  finding: FoundCause,
  observed: Observations,
  blocked: readonly ConnectionPair[],
): FoundCause {
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
function notServed({ truncated }: Observations, losses: readonly SeenExchange[]): FoundCause {
  const servers = [...new Set(losses.map(({ server }) => server.address))];
  return {
    title: 'Large answers cannot be fetched because queries over TCP get no reply',
    severity: 'critical',
    confidence: 0.75,
    seen: [
      truncated.length > 0 && tooLarge(truncated),
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

function neverRetried(
  { truncated, others, domains }: Observations,
  udpOnly: readonly UdpOnlyClient[],
  hasTcp: boolean,
): Verdict {
  const exchanges = udpOnly.flatMap(({ own }) => own);
  const fails = udpOnly.some((each) => failsWithoutTcp(each, hasTcp));
  // Nothing shows that TCP would be in the capture.
  if (!hasTcp && !fails && others.opened === 0)
    return withoutTcp(
      domains,
      truncated,
      exchanges,
      'The capture contains no TCP at all, so it was taken for UDP only, or no TCP reaches this point.',
    );
  // A capture at a DNS pod does not contain first packets that are dropped before it.
  if (hasTcp && !udpOnly.every(isSeenWithoutTcp)) {
    const clients = listed(
      udpOnly.map(({ client, own }) => `${client.address} (${own.length} of them)`),
    );
    return {
      ...withoutTcp(
        domains,
        truncated,
        exchanges,
        `No TCP from ${clients} passed this point, while others retried over TCP and were answered here.`,
      ),
      severity: fails ? 'critical' : 'warning',
    };
  }
  return {
    title: 'Large answers are incomplete because a client does not retry over TCP',
    severity: fails ? 'critical' : udpOnly.every(usesPartialAnswers) ? 'info' : 'warning',
    confidence: hasTcp ? 0.9 : fails ? 0.75 : 0.6,
    seen: [
      tooLarge(truncated),
      `${listed(udpOnly.map(({ client, own }) => `${client.address} (${own.length} of them)`))} never retried over TCP${hasTcp ? ', while others did' : `, and the capture contains ${others.opened > 0 ? 'no DNS over TCP' : 'no TCP at all'}`}.`,
    ],
    why: 'A truncated answer has to be fetched again over TCP, which some resolvers cannot do. evdns (PgBouncer, Tor …) fails, while musl before 1.2.4 (Alpine before 3.18) and busybox use the part that arrived.',
    fix: [
      'Use a newer base image (musl 1.2.4, Alpine 3.18), or PgBouncer built with c-ares.',
      smaller(truncated, domains),
    ],
    prove: `ndots query ${exchanges[0]!.name} @${exchanges[0]!.server.address} +tcp is answered, but the program still fails`,
    disproved: hasTcp
      ? 'the program has a connection to the server that was opened before the capture began'
      : 'the capture filter allowed only UDP',
    exchanges,
  };
}

/** The capture may have been filtered, TCP may be blocked before this point, or the clients do not use it. */
function withoutTcp(
  domains: Observations['domains'],
  truncated: readonly SeenExchange[],
  exchanges: readonly SeenExchange[],
  seen: string,
): FoundCause {
  const { name, server } = exchanges[0]!;
  return {
    title: 'Answers are truncated, but the capture does not show whether TCP works',
    severity: 'warning',
    confidence: 0.6,
    seen: [tooLarge(truncated), seen],
    why: 'A truncated answer has to be fetched again over TCP. If TCP port 53 is blocked before this point (a network policy or firewall that allows only UDP), the lookups hang or fail. If the clients do not use TCP (evdns, musl before 1.2.4), they fail or use the part that arrived.',
    fix: [
      'Capture in the client’s pod with TCP (tcpdump port 53, without udp) to see which of these it is.',
      `Open TCP port 53 to ${server.address} wherever UDP port 53 is open.`,
      smaller(truncated, domains),
    ],
    prove: `ndots query ${name} @${server.address} +tcp in the client’s pod gets no answer if TCP is blocked`,
    disproved: 'that query is answered, and the clients get the whole answer',
    exchanges,
  };
}

/** A Service’s kind and endpoints determine only the size of the answers for cluster names. */
function smaller(truncated: readonly SeenExchange[], domains: Observations['domains']): string {
  return truncated.some(({ name }) => domains.isOfCluster(name))
    ? 'To make answers smaller, use a normal Service instead of a headless one, or fewer endpoints.'
    : 'To make answers smaller, publish fewer records under these names, if their zone is yours.';
}

function tooLarge(truncated: readonly SeenExchange[]): string {
  const names = [...new Set(truncated.map(({ name }) => name))];
  return sentence(`${truncated.length} answers were too large for UDP (TC): ${listed(names)}`);
}

function acceptedText({ connections, lastMs }: Observations): string {
  const pairs = connections.at(lastMs);
  const accepted = pairs.reduce((sum, pair) => sum + pair.accepted, 0);
  return `${share(accepted, accepted + pairs.reduce((sum, pair) => sum + failedOf(pair), 0))} connections were accepted at once`;
}
