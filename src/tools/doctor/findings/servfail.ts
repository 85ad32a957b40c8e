/** SERVFAIL replies, by server and by name. */
import { servers, isServfail, total, upstreamTimes } from '../cluster/traffic.ts';
import { grown } from '../cluster/counter-growth.ts';
import { nameOf, dnsSelectorOf, podAt } from '../cluster/facts.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, answered, noOutcomes, type Outcomes } from '../observe/outcomes.ts';
import { RCODE, rcodeName, TYPE } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { commonZone, isWithin } from '../../../server/wire/within-zone.ts';
import { registeredDomainOf } from '../observe/domain-of-name.ts';
import { failedExchanges } from '../observe/failed-exchanges.ts';
import { failedInSilence, waitedForLostTest } from '../observe/consequences.ts';
import {
  excluded,
  unknown,
  type FindingKind,
  type PartialText,
  clusterFinding,
  unread,
  quiet,
  notAsked,
} from './finding.ts';
import { clock, keysOf, listed, sentence, share } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { neverAnswering } from '../observe/never-answers.ts';
import { programs, upstreams } from '../observe/roles.ts';
import { causeBeyond, expiredZones } from '../observe/failing-zones.ts';
import { latencyOf } from '../../capture/pair/seen-exchange.ts';
import {
  ALWAYS_FAILS,
  CLUSTER_SERVFAIL,
  FAILS_IN_TURN,
  MIN_FINE_REPLIES,
} from '../thresholds/errors.ts';
import {
  FROM_UPSTREAM_SHARE,
  LONG_WAIT_MS,
  MANY_ERRORS,
  MIN_CASES,
  MIN_MEASURED_QUERIES,
  MOST,
  OUTAGE_SHARE,
  RARE_SHARE,
} from '../thresholds/evidence.ts';

/** SERVFAIL only for cluster names, because the server has no cluster objects. */
export const clusterServfail: FindingKind = {
  code: 'ND5001',
  title: 'Cluster names fail because the DNS pods cannot reach the API server',
  name: 'DNS pods without a connection to the API server',
  inCapture(observed, claims) {
    const { inside, outside } = halves(observed, claims);
    if (inside.asked === 0) return unknown('no cluster name was queried');
    if (inside.servfail < MANY_ERRORS || inside.servfail < CLUSTER_SERVFAIL.inside * inside.asked)
      return excluded('cluster names are answered');
    const byType = ofCluster(observed, claims);
    if (byType.a.asked >= MIN_CASES && byType.a.servfail === 0)
      return excluded('only AAAA fails for cluster names');
    const meanwhile = observed.ways.between(byType.fromMs, byType.toMs).outside;
    if (
      outside.servfail > CLUSTER_SERVFAIL.outside * outside.asked + 1 ||
      (outside.servfail > 1 && meanwhile.servfail > CLUSTER_SERVFAIL.inside * meanwhile.asked)
    )
      return excluded('external names fail as well');
    const { failing, fine } = clusterNames(observed, claims);
    // A server without its lists cannot answer any cluster name.
    if (fine > failing)
      return excluded(
        `${fine} of ${fine + failing} cluster names never fail at that time, so failures depend on the name`,
      );
    for (const { name } of observed.names.list)
      if (observed.domains.isOfCluster(name)) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: outside.asked >= MANY_ERRORS ? 0.92 : 0.75,
      seen: [
        `${share(inside.servfail, inside.asked)} queries for cluster names got SERVFAIL.`,
        outside.asked > 0 && `For other names, it was ${share(outside.servfail, outside.asked)}.`,
        onlyServersText(observed),
      ],
      why: 'The DNS server answers, and its forwarding works, but it has no cluster objects. It was started while the API server could not be reached, or is still reading its lists, and does not know whether a Service exists.',
      fix: [
        'Determine why the DNS pods cannot reach the API server (its Service 10.96.0.1, certificates, network policy), with kubectl -n kube-system logs -l k8s-app=kube-dns.',
        'Set a readinessProbe on /ready, which keeps a pod that has not read its lists out of the Service.',
        'With ndots, set kubernetes { snapshot FILE }, which answers from the last state across restarts.',
      ],
      prove:
        'kubectl -n kube-system logs -l k8s-app=kube-dns | grep -i -e reflector -e "plugin/kubernetes"',
      disproved: 'the log shows synchronized lists and no API errors',
      exchanges: failedExchanges(observed, (name) => observed.domains.isOfCluster(name)),
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const failing = answers.replicas.filter(({ outcome }) => outcome === 'SERVFAIL');
    const alive = answers.replicas.filter(({ asked }) => asked.reply !== null);
    if (alive.length === 0) return unknown('no DNS pod answers');
    if (failing.length === 0) return excluded('cluster names are answered');
    const outside = answers.external.filter(({ outcome }) => outcome === 'NOERROR');
    return clusterFinding(this, {
      severity: 'critical',
      confidence: outside.length > 0 ? 0.93 : 0.82,
      seen: [
        `${failing[0]!.name} gets SERVFAIL from ${failing.length} of ${alive.length} DNS pods: ${listed(failing.map(({ server }) => podAt(facts, server)))}.`,
        outside.length > 0 && `${outside[0]!.name} is answered.`,
      ],
      affected: failing.map(({ server }) => podAt(facts, server)),
      why: 'The server answers, but has no cluster objects. It was started while the API server could not be reached, is not allowed to list them, or is still reading.',
      fix: [
        `Check its log with kubectl -n ${facts.namespace} logs -l '${dnsSelectorOf(facts)}' | grep -i -e reflector -e plugin/kubernetes`,
        'Make sure that its ClusterRole allows list and watch on services, namespaces and endpointslices (and pods, with pods verified).',
      ],
      prove: `run ndots query ${failing[0]!.name} @${failing[0]!.server}; an Extended DNS Error may show the reason`,
      disproved: 'the log shows that the lists are synchronized',
    });
  },
};

/** Names the servers that fail for all cluster names while others fail for none; empty if servers do not differ. */
function onlyServersText({ names, domains }: Observations): PartialText {
  const sums = new Map<string, { answered: number; servfail: number }>();
  for (const { name, servers } of names.list)
    if (domains.isOfCluster(name))
      for (const [server, { found, nodata, nxdomain, servfail }] of servers) {
        const sum = sums.get(server) ?? { answered: 0, servfail: 0 };
        sum.answered += found + nodata + nxdomain;
        sum.servfail += servfail;
        sums.set(server, sum);
      }
  const failing = [...sums].filter(([, { answered, servfail }]) => servfail > 0 && answered === 0);
  const well = [...sums].filter(
    ([, { answered, servfail }]) => answered >= MIN_CASES && servfail === 0,
  );
  if (failing.length === 0 || failing.length + well.length < sums.size || well.length === 0)
    return false;
  const list = (all: typeof well): string => listed(all.map(([server]) => server));
  return `All of these replies came from ${list(failing)}, while ${list(well)} answered every query for cluster names.`;
}

/** SERVFAIL without a more specific cause. */
export const serverFails: FindingKind = {
  code: 'ND4002',
  title: 'A name server answers with SERVFAIL',
  name: 'SERVFAIL of servers',
  inCapture(observed, claims) {
    const isWithinSilence = failedInSilence(observed, claims);
    const expired = expiredZones(observed);
    // A silent primary server does not delay replies: the zone expires.
    const isOfSilence = (name: string, type: number): boolean =>
      isWithinSilence(name, type) && !expired.some(({ zone }) => isWithin(name, zone));
    const names = observed.names.list
      .filter(
        ({ name, type, outcomes }) =>
          failures(outcomes) > 0 && !claims.names.has(name) && !isOfSilence(name, type),
      )
      .toSorted((one, other) => failures(other.outcomes) - failures(one.outcomes));
    // Failures that a name server passes on are seen twice, and clients are affected.
    const theirs = programs(observed);
    const servfail = Math.min(
      names.reduce((sum, { outcomes }) => sum + failures(outcomes), 0),
      theirs.reduce((sum, { outcomes }) => sum + failures(outcomes), 0),
    );
    const asked = theirs.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    if (asked === 0) return unknown('no query was seen');
    const addresses = new Set(theirs.map(({ address }) => address));
    const open = failedExchanges(observed, (name) => !claims.names.has(name));
    const waitsForLost = waitedForLostTest(observed);
    if (open.length > 0 && open.filter((each) => waitsForLost(each)).length >= MOST * open.length)
      return excluded('the server fails because its own queries get no reply (see their loss)');
    const late = open.filter(
      (each) =>
        (latencyOf(each) ?? 0) >= LONG_WAIT_MS &&
        addresses.has(each.client.address) &&
        !isOfSilence(each.name, each.type),
    );
    const comparable = Math.min(asked, comparableTo(observed, names));
    if ((servfail < MANY_ERRORS || servfail < RARE_SHARE * comparable) && late.length < MIN_CASES)
      return excluded(failingText(observed, servfail));
    const views = observed.backends.size > 1 ? observed.backends.list : observed.servers.list;
    const behind = upstreams(observed);
    const never = neverAnswering(names);
    const causes = observed.servers.list.filter(
      ({ address, outcomes }) =>
        behind.has(address) &&
        // A cache returns one failure many times.
        (failures(outcomes) >= FROM_UPSTREAM_SHARE * servfail ||
          (failures(outcomes) >= MANY_ERRORS && failures(outcomes) >= 0.5 * answered(outcomes)) ||
          never.has(address)),
    );
    const [worst] = (causes.length > 0 ? causes : views).toSorted(
      (one, other) => failures(other.outcomes) - failures(one.outcomes),
    );
    if (worst === undefined) return unknown('there are more servers than can be counted');
    // The server’s count includes failures that other findings explain.
    const ofThese = failures(worst.outcomes) > servfail ? '' : ` (${failures(worst.outcomes)})`;
    const slow = observed.failures.length > 0;
    const errors = errorsOf(observed, names);
    const [mostly] = errors;
    const byName = goesByName(observed, names);
    const target = byName === null ? '' : aliasOf(observed, names[0]!.name);
    const beyond = byName === null ? null : causeBeyond(observed, names);
    // A server that gives up waiting for a slow one answers the same names at other times.
    const isWaiting = late.length >= MOST * open.length;
    const turns = byName === null && !isWaiting ? failsInTurn(names, servfail) : null;
    const isFelt = servfail >= OUTAGE_SHARE * asked || byName !== null;
    return {
      title:
        byName === null
          ? (turns?.title ?? `A name server answers with ${mostly}`)
          : byName.zone !== null
            ? `Names in ${byName.zone} fail with ${mostly}, while ${byName.isAllOutside ? 'cluster names do not' : 'other external names are answered'}${beyond === null ? '' : `: ${beyond.title}`}`
            : byName.isAllOutside
              ? `External names fail with ${mostly}, while cluster names do not${byName.failing > 1 ? ': the upstream is unusable' : ''}`
              : `Some names always fail with ${mostly}, while others never do${beyond === null ? '' : `: ${beyond.title}`}`,
      severity: isFelt ? 'critical' : 'warning',
      confidence: turns !== null ? 0.85 : byName === null ? 0.75 : beyond === null ? 0.83 : 0.9,
      seen: [
        sentence(
          `${share(servfail, asked)} queries got ${errors.join(' or ')}, ${causes.length > 0 ? `which came from the upstream ${worst.address}` : `mostly from ${worst.address || 'this server'}`}${ofThese}. They include ${listed([...new Set(names.map(({ name }) => name))])}`,
        ),
        ...(byName === null
          ? []
          : [
              byName.isAllOutside &&
                (byName.zone !== null
                  ? `All external names that were queried are in ${byName.zone}. If names in other zones also fail, forwarding to the upstream is at fault, and otherwise the servers or the signatures (DNSSEC) of this zone are.`
                  : byName.failing === 1
                    ? 'No other external name was queried. If another one also fails, forwarding to the upstream is at fault.'
                    : 'No external name is answered, while cluster names are. Forwarding to the upstream fails, not these names.'),
              `${byName.isAllOutside ? '' : 'The failures depend on the name. '}${byName.sinceMs === null ? '' : `Since ${clock(byName.sinceMs)}, `}${byName.failing} ${byName.failing === 1 ? 'name has' : 'names have'} never been answered${isAaaaAlone(observed, names) ? ' for AAAA, although the A queries are answered (possibly from a cache)' : ''}, while ${byName.fine} other ${byName.fine === 1 ? 'name has' : 'names have'} never failed.`,
            ]),
        claims.unanswered.length > 0 &&
          `${claims.unanswered.length} more queries for external names got no reply, while all queries for cluster names did. The server is still waiting for its upstream then.`,
        turns !== null && turns.seen,
        beyond !== null && beyond.seen,
        target !== '' &&
          `No server answers for ${target} (the alias target of ${names[0]!.name}), and nothing else is affected.`,
        late.length >= MIN_CASES &&
          `${late.length} of these failures took a second or more, because the server was waiting for another server that did not answer.`,
        slow &&
          `According to its log, it was waiting for ${listed([...new Set(observed.failures.map(({ upstream, text }) => upstream || text.slice(0, 60)))])}.`,
      ],
      why:
        mostly === 'SERVFAIL' &&
        byName?.isAllOutside === true &&
        byName.zone === null &&
        byName.failing > 1
          ? 'The server answers cluster names from its own data, but gets nothing usable from its upstream for other names. The upstream is down, refuses or fails itself, or the connection to it fails (with DNS over TLS, perhaps because of a certificate). Programs retry, try the next search domain, or fail.'
          : mostly === 'SERVFAIL'
            ? 'The server could not get an answer itself, because its upstream did not reply or replied with an error, or the signatures do not verify. Programs retry, try the next search domain, or fail. musl (Alpine) fails after 5 s.'
            : `${mostly} comes from a server that does not understand or support the query’s options (EDNS, cookies), type or operation. The DNS server passes it on from its upstream.`,
      fix: [
        turns !== null && turns.fix,
        beyond !== null && beyond.fix,
        byName?.isAllOutside === true &&
          byName.zone === null &&
          'Query the DNS pods’ upstream (see the Corefile’s forward line or the node’s resolv.conf) for any external name. It does not answer, or not over the protocol that forward uses.',
        byName !== null &&
          (!byName.isAllOutside || byName.zone !== null || byName.failing <= 1) &&
          `Query ${target === '' ? names[0]!.name : target} at its zone’s own servers. They do not answer, or their answer is not accepted. Correct the alias (a Service of type ExternalName) or the forward for that zone.`,
        'To determine what the server waits for, check its log (errors) and its metrics by upstream (coredns_proxy_request_duration_seconds by "to" and rcode).',
        'Use more than one upstream, with health checks (which forward does).',
      ],
      prove: `run ndots query ${names[0]?.name ?? 'NAME'} @${worst.address || 'SERVER'} +dnssec; an Extended DNS Error may show the reason, and if +cdflag gets an answer, DNSSEC validation fails`,
      disproved:
        causes.length > 0
          ? `${worst.address} answers the same query`
          : 'the same query at the server’s upstream is answered',
      exchanges: failedExchanges(observed, () => true),
    };
  },
  inCluster(facts) {
    const measured = servers(facts);
    if (measured.length === 0) return unread;
    const replies = total(facts, 'coredns_dns_responses_total');
    const failed = total(facts, 'coredns_dns_responses_total', isServfail);
    if (replies < MIN_MEASURED_QUERIES) return quiet;
    if (failed < MANY_ERRORS || failed < RARE_SHARE * replies)
      return excluded(`${share(failed, replies)} replies were SERVFAIL`);
    const worst = measured.toSorted(
      (one, other) =>
        grown(other, 'coredns_dns_responses_total', isServfail) -
        grown(one, 'coredns_dns_responses_total', isServfail),
    );
    const slow = upstreamTimes(facts).filter(({ failures }) => failures > 0);
    return clusterFinding(this, {
      severity: failed >= OUTAGE_SHARE * replies ? 'critical' : 'warning',
      confidence: 0.8,
      seen: [
        `${share(failed, replies)} replies during the measurement were SERVFAIL, mostly from ${worst[0]!.pod.name}.`,
        ...slow.map(
          ({ to, failures, count }) =>
            `${share(failures, count)} replies from the upstream ${to} were SERVFAIL or REFUSED.`,
        ),
      ],
      affected: worst
        .filter((each) => grown(each, 'coredns_dns_responses_total', isServfail) > 0)
        .map(({ pod }) => nameOf(pod)),
      why: 'The server could not get an answer itself, because its upstream did not reply or replied with an error. Programs retry, try the next search domain, or fail. musl (Alpine) fails after 5 s.',
      fix: [
        'To determine what the server waits for, check its log (errors) and coredns_proxy_request_duration_seconds by "to" and rcode.',
        'Use more than one upstream, with health checks (which forward does).',
      ],
      prove:
        'read coredns_dns_responses_total{rcode="SERVFAIL"} by zone and plugin twice and compare',
      disproved: 'the counter does not rise the next time (then it was one client with one name)',
    });
  },
};

/**
 * Counts names that always fail, or fail since some moment, while others never do. Null if
 * failures do not depend on the name.
 */
function goesByName(
  { names: { list }, domains }: Observations,
  names: readonly NameView[],
): {
  readonly failing: number;
  readonly fine: number;
  /** Only external names fail, and none of the queried ones is answered. */
  readonly isAllOutside: boolean;
  /** The external zone that all failing names are in, without a final dot; null: there are several, or one name. */
  readonly zone: string | null;
  /** Start of the failures, milliseconds since 1970; null if the names have always failed. */
  readonly sinceMs: number | null;
} | null {
  const failing = new Map<string, number>();
  let sinceMs = Infinity;
  for (const { name, outcomes, denial, answeredMs } of names) {
    if (outcomes.found + outcomes.nodata + outcomes.nxdomain > 0) {
      // Two caches may keep an answer for different times.
      if (denial === null || denial.count < MOST * failures(outcomes)) return null;
      if ([...answeredMs.values()].some((ms) => ms >= denial.fromMs)) return null;
      sinceMs = Math.min(sinceMs, denial.fromMs);
    }
    failing.set(name, (failing.get(name) ?? 0) + failures(outcomes));
  }
  const others = new Set(
    list.flatMap(({ name, outcomes }) => (outcomes.found > 0 && !failing.has(name) ? name : [])),
  );
  const fine = others.size;
  const isAllOutside =
    [...others].every((name) => domains.isOfCluster(name)) &&
    ![...failing.keys()].some((name) => domains.isOfCluster(name));
  const isAlways = [...failing.values()].every((count) => count >= ALWAYS_FAILS.asked);
  // A server that denies names of the cluster has its data as well.
  const denied = new Set(
    list.flatMap(({ name, outcomes }) =>
      outcomes.nxdomain > 0 && domains.isOfCluster(name) && !failing.has(name) ? name : [],
    ),
  );
  const zone = failing.size === 0 ? '.' : [...failing.keys()].reduce(commonZone);
  const isOfZone = (name: string): boolean => registeredDomainOf(name) === registeredDomainOf(zone);
  const isZone =
    failing.size > 1 &&
    zone.split('.').length > 2 &&
    !domains.isOfCluster(zone) &&
    (isAllOutside || [...others].some((name) => !domains.isOfCluster(name) && !isOfZone(name)));
  const isSeen =
    fine >= ALWAYS_FAILS.fine ||
    (isAllOutside && fine > 0 && failing.size > 1 && fine + denied.size >= ALWAYS_FAILS.fine);
  return isAlways && isSeen && (isAllOutside || failing.size <= fine)
    ? {
        failing: failing.size,
        fine,
        isAllOutside,
        zone: isZone ? zone.slice(0, -1) : null,
        sinceMs: sinceMs === Infinity ? null : sinceMs,
      }
    : null;
}

/**
 * Describes servers of which one fails for names that another one answers, by turns; null: names fail for
 * another reason.
 */
function failsInTurn(
  names: readonly NameView[],
  servfail: number,
): { readonly title: string; readonly seen: string; readonly fix: string } | null {
  const mixed = names.filter(
    ({ outcomes, denial }) =>
      failures(outcomes) >= MIN_CASES &&
      outcomes.found + outcomes.nodata + outcomes.nxdomain >= MIN_CASES &&
      // Failures in a row are a time, and not one of several servers.
      denial !== null &&
      denial.count < MOST * failures(outcomes),
  );
  const count = mixed.reduce((sum, { outcomes }) => sum + failures(outcomes), 0);
  if (mixed.length < FAILS_IN_TURN.names || count < MOST * servfail) return null;
  const zone = mixed.map(({ name }) => name).reduce(commonZone);
  const byServer = new Map<string, Outcomes>();
  for (const { servers: theirs } of mixed)
    for (const [address, outcomes] of theirs) {
      const sum = byServer.get(address) ?? noOutcomes();
      addOutcomes(sum, outcomes);
      byServer.set(address, sum);
    }
  const all = [...byServer];
  const failing = all.filter(([, outcomes]) => failures(outcomes) === answered(outcomes));
  const fine = all.filter(([, outcomes]) => failures(outcomes) === 0);
  const where = zone.split('.').length > 2 ? `the zone ${zone.slice(0, -1)}` : 'these names';
  const why =
    'A secondary server whose copy of the zone has expired because it cannot reach its primary server fails like this.';
  if (failing.length > 0 && fine.length > 0 && failing.length + fine.length === all.length) {
    const [bad, good] = [failing, fine].map((each) => listed(each.map(([address]) => address)));
    return {
      title: `${bad} fails for names that another server answers`,
      seen: `${bad} ${failing.length === 1 ? 'answers' : 'answer'} every query for ${where} with an error, while ${good} ${fine.length === 1 ? 'answers' : 'answer'} the same names. ${why}`,
      fix: `Check whether ${bad} has loaded ${where}, and whether it reaches the primary server (BIND: rndc zonestatus; its log names failed transfers).`,
    };
  }
  if (all.length !== 1) return null;
  const [address] = all[0]!;
  return {
    title: `One of the servers behind ${address} fails for names that another one answers`,
    seen: `The same names get an error at some times and an answer at others, by turns, so the servers behind ${address} most likely differ: one of them cannot answer for ${where}. ${why}`,
    fix: `Query each server behind ${address} at its own address. Check whether the one that fails has loaded ${where}, and whether it reaches the primary server or its upstream.`,
  };
}

/** True if only AAAA fails, and A of each name is found. */
function isAaaaAlone({ names }: Observations, views: readonly NameView[]): boolean {
  return views.every(
    ({ name, type }) => type === TYPE.AAAA && (names.get(name, TYPE.A)?.outcomes.found ?? 0) > 0,
  );
}

/** The name's alias target, taken from its failed replies; empty if none contains it. */
function aliasOf(observed: Observations, wanted: string): string {
  for (const { reply, answers, name } of failedExchanges(observed, (each) => each === wanted)) {
    if (reply === null || answers === 0 || name !== wanted) continue;
    try {
      const alias = readMessage(reply).answer.findLast(({ type }) => type === TYPE.CNAME);
      if (alias !== undefined) return printData(alias.type, alias.data);
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
    }
  }
  return '';
}

/** The reason that there is no finding. Failures are rare, or their cause is known. */
function failingText({ total }: Observations, unexplained: number): string {
  const all = failures(total);
  if (all <= unexplained || all < RARE_SHARE * total.asked) return 'SERVFAIL is rare';
  return `${share(all, answered(total))} replies are SERVFAIL or another error, and the findings explain ${unexplained === 0 ? 'them' : `all but ${unexplained} of them`}`;
}

/** Queries that were answered with an error other than REFUSED. */
function failures({ servfail, error }: Outcomes): number {
  return servfail + error;
}

/**
 * Queries that could have failed in the same way. If all these names are external, only queries for
 * external names without a search domain count.
 */
function comparableTo(
  { names: { list }, domains, total }: Observations,
  names: readonly NameView[],
): number {
  const isOutside = ({ name }: NameView): boolean =>
    !domains.isOfCluster(name) && domains.domainOf(name) === null;
  if (!names.every(isOutside)) return total.asked;
  return list.reduce((sum, view) => (isOutside(view) ? sum + view.outcomes.asked : sum), 0);
}

/** The errors of these names other than REFUSED, the most frequent first. */
function errorsOf({ failed }: Observations, names: readonly NameView[]): readonly string[] {
  const own = new Set(names.map(({ name }) => name));
  const errors = keysOf(
    failed.filter(({ name, rcode }) => own.has(name) && rcode !== RCODE.REFUSED),
    ({ rcode }) => rcodeName(rcode),
  );
  return errors.length === 0 ? ['SERVFAIL'] : errors;
}

function halves(
  { names, domains }: Observations,
  claims: Claims,
): { inside: Outcomes; outside: Outcomes } {
  const sums = { inside: noOutcomes(), outside: noOutcomes() };
  for (const { name, outcomes } of names.list) {
    if (claims.names.has(name)) continue;
    const into = domains.isOfCluster(name) ? sums.inside : sums.outside;
    addOutcomes(into, outcomes);
  }
  return sums;
}

/** Cluster names that fail, and those that were queried at the same time and never fail. */
function clusterNames(
  { names, domains, failed }: Observations,
  claims: Claims,
): { readonly failing: number; readonly fine: number } {
  const failing = new Set<string>();
  const answers = new Map<string, number>();
  for (const { name, outcomes } of names.list) {
    if (!domains.isOfCluster(name) || claims.names.has(name)) continue;
    if (outcomes.servfail > 0) failing.add(name);
    else answers.set(name, (answers.get(name) ?? 0) + answered(outcomes));
  }
  for (const { name } of failed) answers.delete(name);
  const fine = [...answers.values()].filter((count) => count >= MIN_FINE_REPLIES).length;
  return { failing: failing.size, fine };
}

/**
 * The results of A queries for cluster names, and the time span of all their failures in
 * milliseconds since 1970.
 */
function ofCluster(
  { names, domains, failed }: Observations,
  claims: Claims,
): { readonly a: Outcomes; readonly fromMs: number; readonly toMs: number } {
  const a = noOutcomes();
  const isOwn = (name: string): boolean => domains.isOfCluster(name) && !claims.names.has(name);
  for (const { name, type, outcomes } of names.list)
    if (type === TYPE.A && domains.isOfCluster(name)) addOutcomes(a, outcomes);
  const times = failed.flatMap(({ name, sentMs }) => (isOwn(name) ? sentMs : []));
  return {
    a,
    fromMs: times.reduce((least, ms) => Math.min(least, ms), Infinity),
    toMs: times.reduce((most, ms) => Math.max(most, ms), -Infinity),
  };
}
