/** Queries with EDNS that get no reply, while those without it are answered. */
import type { Observations } from '../observe/observations.ts';
import { isFailure } from '../observe/outcomes.ts';
import type { QueryCounts, ServerView } from '../observe/server-view.ts';
import { asksBoth, isDeaf } from '../observe/edns-losses.ts';
import { excluded, unknown, type FindingKind, type FoundCause } from './finding.ts';
import { listed, share } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { SPARED_SHARE, MOST } from '../thresholds/evidence.ts';
import { MIN_FAILED_NAMES } from '../thresholds/search.ts';
import {
  EDNS_LOST,
  MIN_EDNS_QUERIES,
  MIN_FORMERR,
  SURE_EDNS_LOSSES,
} from '../thresholds/transport.ts';

const WITHOUT_EDNS =
  'Until then, remove options edns0 and trust-ad from the clients’ resolv.conf (dnsConfig). This does not help Go programs, which always use EDNS.';

/** The OPT record (RFC 6891) decides whether a query is answered. */
export const droppedEdns: FindingKind = {
  code: 'ND4009',
  title: 'A server does not answer queries over TCP or with EDNS',
  name: 'queries with EDNS that are dropped',
  inCapture(observed, claims) {
    const both = observed.servers.list.filter(
      ({ edns, plain }) => edns.asked >= MIN_EDNS_QUERIES && plain.asked >= MIN_EDNS_QUERIES,
    );
    const alone = observed.servers.list.filter(isMisledAlone);
    if (both.length === 0 && alone.length > 0) return misreads(alone, observed, claims);
    const behind = misreadBehind(observed, claims);
    if (behind !== null) return behind;
    if (both.length === 0) return unknown('no server was queried both with and without EDNS');
    const deaf = both.filter((server) => isDeaf(server, observed));
    const misled = both.filter(isMisled);
    if (misled.length > 0) return misreads(misled, observed, claims);
    const losses = deaf.flatMap(({ address }) =>
      claims.openTo(address).filter(({ udpSize }) => udpSize > 0),
    );
    if (deaf.length > 0 && losses.length < MIN_EDNS_QUERIES)
      return unknown(
        'the clients that use EDNS lose their queries, but another difference between the clients explains it (query without EDNS from one of them)',
      );
    if (deaf.length === 0)
      return excluded(
        `${share(total(both, 'edns', 'lost'), total(both, 'edns', 'asked'))} queries with EDNS are lost, compared with ${share(total(both, 'plain', 'lost'), total(both, 'plain', 'asked'))} without`,
      );
    claims.take(losses);
    const addresses = deaf.map(({ address }) => address);
    const isProven = observed.clients.list.some(asksBoth);
    return {
      severity: 'critical',
      confidence: isProven ? (losses.length >= SURE_EDNS_LOSSES ? 0.93 : 0.85) : 0.75,
      seen: [
        `Of queries with EDNS to ${listed(addresses)}, ${share(total(deaf, 'edns', 'lost'), total(deaf, 'edns', 'asked'))} got no reply. Of queries without it, ${share(total(deaf, 'plain', 'lost'), total(deaf, 'plain', 'asked'))} got none.`,
        !isProven &&
          'No client sends queries both with and without EDNS. A rule for exactly these pods would look the same (ND3004), but they have nothing else in common.',
      ],
      why: 'EDNS adds a record to the query (OPT, RFC 6891) that also states how large a reply may be. Old servers and firewalls that inspect DNS drop such queries. A client that uses EDNS waits until it times out, and some resolvers then retry without EDNS.',
      fix: [
        `Make ${listed(addresses)} accept queries with an OPT record, or the device in front of it (a firewall that inspects DNS, an old appliance).`,
        'Until then, remove options edns0 and trust-ad from the clients’ resolv.conf, so that they do not use EDNS. If the client is Unbound, use another upstream, because edns-buffer-size does not help.',
      ],
      prove: `run dig +edns=0 ${losses[0]!.name} @${addresses[0]}, then the same with +noedns; only the second query is answered`,
      disproved: 'both queries are answered when they are sent from the same host',
      exchanges: losses,
    };
  },
};

/** True if the server rejects (nearly) all queries with EDNS, and (nearly) none without. */
function isMisled({ edns, plain }: ServerView): boolean {
  return edns.misread >= EDNS_LOST * edns.asked && plain.misread <= SPARED_SHARE * plain.asked;
}

/** True if the server rejects all queries, and all of them use EDNS. */
function isMisledAlone({ edns, plain }: ServerView): boolean {
  return (
    plain.asked === 0 && edns.misread >= MIN_FORMERR && edns.misread === edns.asked - edns.lost
  );
}

/**
 * A server that passes on its upstream's FORMERR: external names always fail with FORMERR or NOTIMP for clients with
 * EDNS, and for no others, while cluster names are answered. Otherwise null.
 */
function misreadBehind(observed: Observations, claims: Claims): FoundCause | null {
  const { clients, servers, domains } = observed;
  const { list } = observed.names;
  const failing = clients.list.filter(({ outcomes }) => outcomes.error > 0);
  const misread = failing.reduce((sum, { outcomes }) => sum + outcomes.error, 0);
  if (misread < MIN_FORMERR || failing.some((each) => each.withEdns < each.outcomes.asked))
    return null;
  const views = list.filter(({ outcomes }) => outcomes.error > 0);
  const names = [...new Set(views.map(({ name }) => name))];
  const plain = clients.list.filter(({ withEdns }) => withEdns === 0);
  const isAnswered = views.some(({ outcomes }) => outcomes.found + outcomes.nodata > 0);
  const inside = list.some(({ name, outcomes }) => domains.isOfCluster(name) && outcomes.found > 0);
  if (names.length < MIN_FAILED_NAMES || names.some((name) => domains.isOfCluster(name)) || !inside)
    return null;
  if (isAnswered && plain.length === 0) return null;
  const [worst] = servers.list.toSorted((one, other) => other.outcomes.error - one.outcomes.error);
  // BADCOOKIE and similar codes are also errors.
  if (worst === undefined || worst.edns.misread < MOST * worst.outcomes.error) return null;
  const server = worst.address;
  // Clients without EDNS that are answered.
  const spared = isAnswered ? plain.map(({ address }) => address) : [];
  const finding = misreads([], observed, claims);
  return {
    ...finding,
    confidence: spared.length > 0 ? 0.93 : 0.85,
    seen: [
      `${share(misread, observed.total.asked)} queries were answered with FORMERR or NOTIMP by ${server}. All of them use EDNS and are for external names (${listed(names)}). Cluster names are answered.`,
      spared.length > 0 && `Queries without EDNS from ${listed(spared)} are answered.`,
    ],
    why: `${server} passes the client’s OPT record (EDNS) on to an upstream that does not support it and answers FORMERR. ${finding.why}`,
    fix: [
      'Use another upstream, or upgrade this one. EDNS dates from 1999.',
      'Or put a forwarder in between that queries the upstream without EDNS (Unbound and BIND detect this automatically).',
      WITHOUT_EDNS,
    ],
    prove: `run dig +edns=0 ${names[0]!} @${server}, then the same with +noedns; only the second query is answered`,
  };
}

function misreads(
  servers: readonly ServerView[],
  observed: Observations,
  claims: Claims,
): FoundCause {
  const addresses = servers.map(({ address }) => address);
  const exchanges = observed.affectedExchanges((each) => each.udpSize > 0 && isFailure(each));
  // Failures of these are expected.
  for (const { name } of exchanges) claims.names.add(name);
  return {
    severity: 'critical',
    confidence: total(servers, 'plain', 'asked') > 0 ? 0.95 : 0.8,
    seen: [
      `Of queries with EDNS to ${listed(addresses)}, ${share(total(servers, 'edns', 'misread'), total(servers, 'edns', 'asked'))} were answered with FORMERR or NOTIMP. Of queries without it, ${share(total(servers, 'plain', 'misread'), total(servers, 'plain', 'asked'))} were.`,
    ],
    why: 'EDNS adds a record to the query (OPT, RFC 6891) that also states how large a reply may be. A server that does not support it answers FORMERR. Some resolvers then retry without EDNS (glibc does), while others fail. Go always uses EDNS.',
    fix: [
      `Upgrade ${listed(addresses)}, or use another server. EDNS dates from 1999.`,
      'Or put a forwarder in front of it that sends queries without EDNS (Unbound and BIND detect this automatically).',
      WITHOUT_EDNS,
    ],
    prove: `run dig +edns=0 ${exchanges[0]?.name ?? 'NAME'} @${addresses[0] ?? 'SERVER'}, then the same with +noedns; only the second query is answered`,
    disproved: 'both queries are answered when they are sent from the same host',
    exchanges,
  };
}

function total(
  servers: readonly ServerView[],
  kind: 'edns' | 'plain',
  what: keyof QueryCounts,
): number {
  return servers.reduce((sum, server) => sum + server[kind][what], 0);
}
