/** Servers that answer every query, but late. */
import { servers, upstreamTimes } from '../cluster/traffic.ts';
import { latencyOf, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from '../observe/observations.ts';
import { isFailure } from '../observe/outcomes.ts';
import { type ServerView } from '../observe/server-view.ts';
import { excluded, unknown, type FoundCause, type FindingKind, unread, quiet } from './finding.ts';
import { between, listed, sentence, share, took, tookFrom } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { externalOnly, lateFrom, lateName, LOGGED } from '../observe/late-replies.ts';
import { waitsForOthers } from '../observe/losses.ts';
import { serveTheSame, upstreams } from '../observe/roles.ts';
import {
  healthText,
  lateZoneServers,
  lowTtlText,
  slowZoneAmong,
  type SlowZone,
} from '../observe/slow-zone.ts';
import { explainLateness, uncachedNames } from '../observe/uncached-names.ts';
import {
  FELT_MS,
  LATE_MS,
  MIN_QUERIES,
  NEARLY_ALL,
  SLOW_QUANTILE,
} from '../thresholds/evidence.ts';
import {
  COLD_CACHE,
  LATE_AT_TIMES,
  LATE_QUANTILE,
  MIN_TIMED_REPLIES,
  SLOW_LOOKUPS,
  SLOW_SISTER,
  SLOW_UPSTREAM_MS,
  SLOW_ZONE,
  WAITING_LOOKUPS,
  WAITS_AT_TIME_MS,
} from '../thresholds/lateness.ts';

export const slowServer: FindingKind = {
  code: 'ND4003',
  title: 'A name server answers slowly',
  name: 'a slow server',
  inCapture(observed, claims) {
    const enough = observed.servers.list.filter(
      ({ address, outcomes }) =>
        outcomes.asked - outcomes.lost >= MIN_TIMED_REPLIES && !claims.late.has(address),
    );
    if (enough.length === 0)
      return unknown('too few replies, or another finding explains the delay');
    const ofZone = slowZoneServers(enough, observed, claims);
    if (ofZone !== null) return ofZone;
    const zone = slowZoneAmong(enough, observed, claims);
    if (zone !== null) return slowZone(zone, observed);
    // Many quick cached or negative replies may hide that all others are late, but lookups show it.
    const waits = observed.slowLookups >= WAITING_LOOKUPS * observed.lookups;
    const late = enough.filter(
      (server) =>
        server.quantile(LATE_QUANTILE) >= LATE_MS ||
        (waits && server.quantile(SLOW_QUANTILE) >= 2 * LATE_MS),
    );
    // The slow upstream is the cause, and the server that waits for it is late, too.
    const behind = upstreams(observed);
    const slow = late.find(({ address }) => behind.has(address)) ?? late[0];
    if (slow !== undefined && areFailures(slow, observed))
      return excluded('the late replies are failures: the server waited without success');
    if (slow !== undefined && isCold(slow, observed)) return coldCache(slow, observed);
    const uncached = slow === undefined ? null : uncachedNames(observed, claims);
    if (uncached !== null && explainLateness(uncached, observed, slow!.address))
      return excluded('the late replies are for names with TTL 0, which no cache keeps');
    if (slow === undefined)
      return (
        atTimes(enough, behind, observed, claims) ??
        slowSister(observed, claims) ??
        excluded(
          `half of all replies arrived within ${took(Math.max(...enough.map((server) => server.quantile(0.5))))}`,
        )
      );
    const lost = lostBehind(slow.address, observed, claims);
    claims.take(lost);
    // A network path can also cause uniform times.
    const path = lost.length > 0 ? null : observed.pathTimes.of(slow.address);
    const mostly = took(slow.quantile(LATE_QUANTILE) / 2);
    const often = took(slow.quantile(SLOW_QUANTILE) / 2);
    const outside = behind.has(slow.address) ? null : externalOnly(slow.address, observed);
    return {
      ...said(slow.address, observed),
      ...(outside === null ? {} : waitsForUpstream(slow.address, outside.zone)),
      ...(path === null ? {} : pathOrServer(slow.address)),
      severity: severityOf(behind.has(slow.address), observed, path !== null),
      confidence: path === null ? 0.8 : 0.7,
      seen: [
        path !== null &&
          `No reply from ${slow.address} took less than ${took(path.fastestMs)}, and half of them took less than ${took(path.usualMs)}, regardless of the name. ${path.handshakes === 0 ? 'The capture has no TCP handshake for comparison.' : `TCP handshakes by the same clients with other hosts took ${took(path.handshakeMs)}.`}`,
        outside !== null && outside.text,
        `One in three replies from ${slow.address || LOGGED} took more than ${mostly}${often === mostly ? '' : `, and one in ten more than ${often}`}.`,
        `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
        lost.length > 0 && lostText(lost.length),
      ],
      exchanges: lateFrom(slow.address, observed),
    };
  },
  inCluster(facts) {
    if (servers(facts).length === 0) return unread;
    const times = upstreamTimes(facts).filter(({ count }) => count >= MIN_QUERIES);
    if (times.length === 0) return quiet;
    const slow = times.filter(({ meanMs }) => meanMs > SLOW_UPSTREAM_MS);
    if (slow.length === 0)
      return excluded(
        `upstreams take ${took(Math.max(...times.map(({ meanMs }) => meanMs)))} or less on average`,
      );
    return {
      severity: 'warning',
      confidence: 0.8,
      seen: slow.map(
        ({ to, count, meanMs }) => `${to} took ${took(meanMs)} on average for ${count} queries.`,
      ),
      affected: slow.map(({ to }) => `upstream ${to}`),
      why: 'Names that are not cached wait for this upstream. If there are several upstreams, which one a client gets is chance.',
      fix: [
        'Remove the upstream if others are faster. In ndots, forward { policy latency } avoids it automatically.',
        'If expired records are acceptable, set serve_stale in cache.',
      ],
      prove: `run ndots bench or ndots query @${slow[0]!.to} on a node with a DNS pod`,
      disproved: 'the upstream answers there within milliseconds',
    };
  },
};

function severityOf(
  isUpstream: boolean,
  { slowLookups, lookups }: Observations,
  isPath: boolean,
): FoundCause['severity'] {
  // Caches hide this upstream from programs.
  if (slowLookups === 0 && isUpstream) return 'info';
  return !isPath && slowLookups >= SLOW_LOOKUPS * lookups ? 'critical' : 'warning';
}

/**
 * True if an upstream is late only for the first query for each name. Few lookups wait, because
 * caches answer the rest.
 */
function isCold({ address }: ServerView, observed: Observations): boolean {
  const { names, lookups, slowLookups } = observed;
  if (slowLookups > COLD_CACHE.slow * lookups || !upstreams(observed).has(address)) return false;
  const asked = names.list.flatMap(({ servers }) => servers.get(address)?.asked ?? []);
  const once = asked.filter((count) => count === 1).length;
  return asked.length >= COLD_CACHE.names && once >= COLD_CACHE.once * asked.length;
}

/** True if (nearly) all late replies are SERVFAIL or another error, which is the graver symptom. */
function areFailures({ address }: ServerView, observed: Observations): boolean {
  const late = lateFrom(address, observed);
  return late.length > 0 && late.filter(isFailure).length >= NEARLY_ALL * late.length;
}

function coldCache(slow: ServerView, observed: Observations): FoundCause {
  const { slowLookups, lookups } = observed;
  return {
    ...said(slow.address, observed),
    title: 'The first query for each name is slow because the cache is empty',
    severity: 'info',
    confidence: 0.7,
    seen: [
      `${slow.address} received (nearly) every question once, and one in ten of its replies took more than ${took(slow.quantile(SLOW_QUANTILE) / 2)}. Repeated queries are answered from the cache.`,
      `${share(slowLookups, lookups)} lookups took a second or more.`,
    ],
    why: 'The upstream resolves each name from the root down the first time, which is normal after a start and for rare names.',
    fix: ['Use cache with prefetch, which refreshes frequent names before they expire.'],
  };
}

/** Names in one zone are late, and other names are quick. */
function slowZone(
  { address, zone, late, names, asked, failed, others }: SlowZone,
  observed: Observations,
): FoundCause {
  const times = late.map((each) => latencyOf(each)!).toSorted((one, other) => one - other);
  const ttls = lowTtlText(observed, names);
  return {
    ...said(address, observed),
    title:
      names.length === 1
        ? `${names[0]!.slice(0, -1)} is slow while other names are quick, so the servers for it are slow`
        : `Names in ${zone.slice(0, -1)} are slow while others are quick, so the servers for that zone are slow`,
    severity: observed.slowLookups >= SLOW_ZONE.felt * observed.lookups ? 'critical' : 'warning',
    confidence: 0.9,
    seen: [
      sentence(
        `${share(late.length, asked)} queries to ${address || LOGGED} for names in ${zone} took ${tookFrom(times[0]!, times.at(-1)!)}, while ${others} other external ${others === 1 ? 'name does' : 'names do'} not take that long. The slow ones include ${listed(names)}`,
      ),
      failed > 0 &&
        `${failed} more queries for names in that zone got SERVFAIL, because the server gave up before a reply arrived, or still had that failure in its cache.`,
      ...ttls,
      `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
    ],
    why: `The servers of ${zone} behind ${address || LOGGED} are slow or far away, or the path to them is slow. DNS pods and clients that give up before the reply arrives report SERVFAIL or a timeout.`,
    fix: [
      `Find the name servers of ${zone} and query them directly. If the Corefile has a forward for this zone, correct it.`,
      ttls.length > 0 &&
        `Ask the owner of ${listed(names)} to raise the TTL, or set a minimum TTL in cache (cache { success 9984 3600 5 }).`,
      `Until then, add a server block for ${zone} with its own forward and cache (serve_stale), so that it does not delay other names.`,
    ],
    prove: `ndots query ${names[0]!} @${address || 'SERVER'} takes about ${took(times[times.length >> 1]!)}, while another external name is quick`,
    disproved: 'other external names take just as long',
    exchanges: late,
  };
}

/** Late servers that are queried for only one zone. Null if there are none. */
function slowZoneServers(
  servers: readonly ServerView[],
  observed: Observations,
  claims: Claims,
): FoundCause | null {
  const found = lateZoneServers(servers, observed);
  if (found === null) return null;
  const { zone, addresses, late: exchanges } = found;
  const times = exchanges.map((each) => latencyOf(each)!).toSorted((one, other) => one - other);
  const lost = new Set(addresses.flatMap((address) => lostBehind(address, observed, claims)));
  claims.take([...lost]);
  const list = listed(addresses);
  const are = addresses.length === 1 ? 'is' : 'are';
  return {
    ...said(addresses[0]!, observed),
    title: `The servers for ${zone.slice(0, -1)} answer slowly`,
    severity: observed.slowLookups >= SLOW_ZONE.felt * observed.lookups ? 'critical' : 'warning',
    confidence: 0.9,
    seen: [
      `${list} ${are} queried only for names in ${zone} ${times.length} of their replies took ${tookFrom(times[0]!, times.at(-1)!)}.`,
      healthText(observed, addresses),
      lost.size > 0 && lostText(lost.size),
      `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
    ],
    why: `${list} ${are} overloaded, far away, or waiting for other servers, or the path to them is slow. A DNS pod that gives up before the reply arrives (CoreDNS after 2 s) answers SERVFAIL. Names outside that zone are not affected.`,
    fix: [
      `Query ${list} directly from a node with a DNS pod, and repair the slow servers or the path to them.`,
      `Until then, keep names in ${zone.slice(0, -1)} in their own server block with a cache that answers with expired records (serve_stale).`,
    ],
    exchanges,
  };
}

/**
 * Detects a server whose replies are mostly quick but sometimes so late that programs wait or have
 * already given up. Null if there are hardly any late replies.
 */
function atTimes(
  servers: readonly ServerView[],
  behind: ReadonlySet<string>,
  observed: Observations,
  claims: Claims,
): FoundCause | null {
  // If a server was silent, that explains its late replies.
  const open = observed.slow.filter((each) => !claims.isOfSilence(each));
  const unexplained = open.length / Math.max(1, observed.slow.length);
  const late = servers.filter(
    (each) =>
      each.late * unexplained >=
      Math.max(
        LATE_AT_TIMES.late,
        LATE_AT_TIMES.share * (each.outcomes.asked - each.outcomes.lost),
      ),
  );
  const slow = late.find(({ address }) => behind.has(address)) ?? late[0];
  if (slow === undefined) return null;
  const { address, outcomes } = slow;
  const exchanges = lateFrom(address, observed).filter((each) => latencyOf(each)! >= FELT_MS);
  if (exchanges.length < LATE_AT_TIMES.late) return null;
  const names = new Set(exchanges.map(({ name }) => name));
  const { fromMs, toMs } = sentSpan(exchanges);
  const longest = exchanges.reduce((most, each) => Math.max(most, latencyOf(each)!), 0);
  return {
    ...said(address, observed),
    confidence: 0.65,
    seen: [
      sentence(
        `${share(slow.late, outcomes.asked - outcomes.lost)} replies from ${address || LOGGED} took ${took(FELT_MS)} or longer, up to ${took(longest)}, while half of all replies arrived within ${took(slow.quantile(0.5))}. The late ones were for queries${exchanges[0]!.logged === 'without times' ? '' : ` ${between(fromMs, toMs)}`} for ${listed([...names])}`,
      ),
      `${share(observed.slowLookups, observed.lookups)} lookups took a second or more. Clients that retry after 5 s (glibc, Go) or 2.5 s (musl) have often failed before the reply arrives.`,
    ],
    exchanges,
  };
}

/**
 * Detects one of several DNS pods or upstreams that is much slower than the others, which the same
 * clients query for the same names. Null if there is none.
 */
function slowSister(observed: Observations, claims: Claims): FoundCause | null {
  const { servers, backends, names } = observed;
  const shared = (one: string, other: string): number =>
    names.list.filter(
      ({ servers: of, outcomes }) => outcomes.found > 0 && of.has(one) && of.has(other),
    ).length;
  for (const list of [backends.list, servers.list]) {
    const enough = list.filter(
      ({ address, outcomes }) =>
        outcomes.asked - outcomes.lost >= SLOW_SISTER.replies && !claims.late.has(address),
    );
    const [slow, ...others] = enough.toSorted(
      (one, other) => other.quantile(0.5) - one.quantile(0.5),
    );
    if (slow === undefined || slow.quantile(0.5) < SLOW_SISTER.ms) continue;
    const sisters = others.filter(
      ({ address }) =>
        serveTheSame(observed, slow.address, address) &&
        shared(slow.address, address) >= SLOW_SISTER.names,
    );
    const usual = Math.min(...sisters.map((each) => each.quantile(0.5)));
    if (sisters.length === 0 || slow.quantile(0.5) < SLOW_SISTER.times * usual) continue;
    return {
      ...said(slow.address, observed),
      title: 'One name server is much slower than others with the same queries',
      confidence: 0.75,
      seen: [
        `Half of the replies from ${slow.address} took more than ${took(slow.quantile(0.5) / 2)}, while half of those from ${listed(sisters.map(({ address }) => address))} arrived within ${took(usual)}.`,
      ],
    };
  }
  return null;
}

/** Only forwarded queries are late. @param zone the one that contains all late names, or empty */
function waitsForUpstream(
  address: string,
  zone: string,
): Pick<FoundCause, 'title' | 'why' | 'fix' | 'disproved'> {
  const domain = zone.slice(0, -1);
  const what = zone === '' ? 'external names' : `names in ${domain}`;
  return {
    title:
      zone === ''
        ? 'External names are slow while cluster names are quick, so the upstream is slow'
        : `Names in ${domain} are slow while cluster names are quick, so the server behind that zone is slow`,
    why: `${address || LOGGED} answers cluster names from memory at once, so it is neither overloaded nor far away. It forwards ${what}, and the upstream ${zone === '' ? 'resolver' : 'for them'} or the path to it takes this long${zone === '' ? '' : ' or loses queries'}. A client whose timeout is shorter gives up before the reply arrives, and a DNS pod that gives up answers SERVFAIL.`,
    fix: [
      zone !== '' &&
        `Check whether the Corefile has a forward for ${domain}, and query its servers directly. Without one, the upstream for all external names is slow.`,
      'Find the slow upstream with coredns_proxy_request_duration_seconds by "to", and query it directly from a node with a DNS pod. Replace it, or repair the path to it.',
      'Until then, use a second upstream (in ndots, forward { policy latency } prefers the fastest) and a cache with prefetch and serve_stale.',
    ],
    disproved: 'the upstream answers the same external names at once when it is queried directly',
  };
}

/** All replies take equally long, and a capture from one place does not show where the time is spent. */
function pathOrServer(
  address: string,
): Pick<FoundCause, 'title' | 'why' | 'fix' | 'prove' | 'disproved'> {
  return {
    title:
      'Every reply from a name server is late, because either the network path or the server is slow',
    why: 'A slow server answers some names at once from its cache and others late. Here, every reply takes (nearly) the same time, as on a long network path (another region, a VPN, a tunnel). A server that waits for the same upstream on every query would look the same.',
    fix: [
      `Measure the path first, with ping -c 5 ${address} or any TCP handshake on the same path. If it takes as long, the path is the cause and not the server.`,
      'If the path is quick, query the server for one name twice. If the second reply is also late, its cache does not work, or it gets too little CPU time.',
      'Keep DNS close to its clients, with a DNS pod in each zone or a cache on each node.',
    ],
    prove: `run ping -c 5 ${address} from the clients’ node, or capture all ports, which shows TCP handshakes`,
    disproved: `ping to ${address} takes much less time (then the server itself waits)`,
  };
}

/** The parts that all variants share. */
function said(
  address: string,
  observed: Observations,
): Pick<FoundCause, 'severity' | 'why' | 'fix' | 'prove' | 'disproved'> {
  return {
    severity: 'warning',
    why: 'The server waits for an upstream that is far away or overloaded, its cache does not help because each name is queried once, or it gets too little CPU time.',
    fix: [
      'Find the slow upstream with coredns_proxy_request_duration_seconds by "to". In ndots, forward { policy latency } prefers the fastest.',
      'Use a cache with prefetch for frequent names.',
    ],
    prove: `run ndots query ${lateName(address, observed)} @${address || 'SERVER'} twice; the second answer comes from the cache`,
    disproved: 'the server’s own latency metric is low (then the path to it is slow)',
  };
}

/** Lost queries that servers in between left unanswered while they waited for this upstream. */
function lostBehind(
  address: string,
  observed: Observations,
  claims: Claims,
): readonly SeenExchange[] {
  if (!upstreams(observed).has(address)) return [];
  const isWaitedFor = ({ name, type, server }: SeenExchange): boolean =>
    server.address !== address && observed.names.get(name, type)?.servers.has(address) === true;
  return claims.open.filter((loss) => isWaitedFor(loss) || isLostWaiting(observed, loss));
}

function lostText(count: number): string {
  return `${count} queries went unanswered because the servers in between gave up before the replies arrived.`;
}

/** True if the server was waiting for an upstream when the query went unanswered. */
function isLostWaiting(observed: Observations, { server, sentMs }: SeenExchange): boolean {
  return waitsForOthers(
    observed,
    server.address,
    sentMs - WAITS_AT_TIME_MS,
    sentMs + WAITS_AT_TIME_MS,
  );
}
