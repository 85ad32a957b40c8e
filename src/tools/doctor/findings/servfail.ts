/** SERVFAIL without a more specific cause, by server and by name. */
import { grown, servers, isServfail, total, upstreamTimes } from '../cluster/traffic.ts';
import { nameOf } from '../cluster/facts.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { answered } from '../observe/outcomes.ts';
import { RCODE, rcodeName, TYPE } from '../../../server/wire/iana.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printData } from '../../../server/wire/print.ts';
import { ReadError } from '../../../server/wire/reader.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { failedExchanges, neverAnswering } from '../observe/failed-queries.ts';
import { failingNames, failures, type FailingNames } from '../observe/failing-names.ts';
import { failsInTurn } from '../observe/fails-in-turn.ts';
import { failedInSilence, waitedForLostTest } from '../observe/consequences.ts';
import { excluded, quiet, unknown, unread, type FindingKind } from './finding.ts';
import { clock, keysOf, listed, sentence, share } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { programs, upstreams } from '../observe/roles.ts';
import { causeBeyond, expiredZones } from '../observe/failing-zones.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { ServerView } from '../observe/server-view.ts';
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

export const serverFails: FindingKind = {
  code: 'ND4002',
  title: 'A name server answers with SERVFAIL',
  name: 'SERVFAIL of servers',
  inCapture(observed, claims) {
    const { names, servfail, asked, open, late } = unexplained(observed, claims);
    if (asked === 0) return unknown('no query was seen');
    const waitsForLost = waitedForLostTest(observed);
    if (open.length > 0 && open.filter((each) => waitsForLost(each)).length >= MOST * open.length)
      return excluded('the server fails because its own queries get no reply (see their loss)');
    const comparable = Math.min(asked, comparableTo(observed, names));
    if ((servfail < MANY_ERRORS || servfail < RARE_SHARE * comparable) && late.length < MIN_CASES)
      return excluded(failingText(observed, servfail));
    const { worst, isUpstream } = worstServer(observed, names, servfail);
    if (worst === undefined) return unknown('there are more servers than can be counted');
    // The server’s count includes failures that other findings explain.
    const ofThese = failures(worst.outcomes) > servfail ? '' : ` (${failures(worst.outcomes)})`;
    const errors = errorsOf(observed, names);
    const [mostly] = errors as [string];
    const byName = failingNames(observed, names);
    const [{ name: first } = { name: 'NAME' }] = names;
    const target = byName === null ? '' : aliasOf(observed, first);
    const beyond = byName === null ? null : causeBeyond(observed, names);
    // A server that gives up waiting for a slow one answers the same names at other times.
    const isWaiting = late.length >= MOST * open.length;
    const turns = byName === null && !isWaiting ? failsInTurn(names, servfail) : null;
    const isAllOutside = byName?.isAllOutside === true;
    return {
      title:
        byName === null
          ? (turns?.title ?? `A name server answers with ${mostly}`)
          : titleOf(byName, mostly, beyond === null ? '' : `: ${beyond.title}`),
      severity: servfail >= OUTAGE_SHARE * asked || byName !== null ? 'critical' : 'warning',
      confidence: turns !== null ? 0.85 : byName === null ? 0.75 : beyond === null ? 0.83 : 0.9,
      seen: [
        sentence(
          `${share(servfail, asked)} queries got ${errors.join(' or ')}, ${isUpstream ? `which came from the upstream ${worst.address}` : `mostly from ${worst.address || 'this server'}`}${ofThese}. They include ${listed(names.map(({ name }) => name))}`,
        ),
        isAllOutside && outsideText(byName),
        byName !== null && namesText(byName, isAaaaAlone(observed, names)),
        claims.unanswered.length > 0 &&
          `${claims.unanswered.length} more queries for external names got no reply, while all queries for cluster names did. The server is still waiting for its upstream then.`,
        turns !== null && turns.seen,
        beyond !== null && beyond.seen,
        target !== '' &&
          `No server answers for ${target} (the alias target of ${first}), and nothing else is affected.`,
        late.length >= MIN_CASES &&
          `${late.length} of these failures took a second or more, because the server was waiting for another server that did not answer.`,
        observed.failures.length > 0 &&
          `According to its log, it was waiting for ${listed(observed.failures.map(({ upstream, text }) => upstream || text.slice(0, 60)))}.`,
      ],
      why: whyOf(mostly, byName),
      fix: [
        turns !== null && turns.fix,
        beyond !== null && beyond.fix,
        isAllOutside &&
          byName.zone === null &&
          'Query the DNS pods’ upstream (see the Corefile’s forward line or the node’s resolv.conf) for any external name. It does not answer, or not over the protocol that forward uses.',
        byName !== null &&
          !byName.isUpstream &&
          `Query ${target || first} at its zone’s own servers. They do not answer, or their answer is not accepted. Correct the alias (a Service of type ExternalName) or the forward for that zone.`,
        'To determine what the server waits for, check its log (errors) and its metrics by upstream (coredns_proxy_request_duration_seconds by "to" and rcode).',
        'Use more than one upstream, with health checks (which forward does).',
      ],
      prove: `run ndots query ${first} @${worst.address || 'SERVER'} +dnssec; an Extended DNS Error may show the reason, and if +cdflag gets an answer, DNSSEC validation fails`,
      disproved: isUpstream
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
    return {
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
    };
  },
};

interface Unexplained {
  /** Names with failures that no other finding explains, the most frequent first. */
  readonly names: readonly NameView[];
  /** Failures of these names that reached programs, of all queries of programs. */
  readonly servfail: number;
  readonly asked: number;
  readonly open: readonly SeenExchange[];
  /** Failures that programs waited for. */
  readonly late: readonly SeenExchange[];
}

function unexplained(observed: Observations, claims: Claims): Unexplained {
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
  const addresses = new Set(theirs.map(({ address }) => address));
  const open = failedExchanges(observed, (name) => !claims.names.has(name));
  const late = open.filter(
    (each) =>
      (latencyOf(each) ?? 0) >= LONG_WAIT_MS &&
      addresses.has(each.client.address) &&
      !isOfSilence(each.name, each.type),
  );
  const asked = theirs.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
  const servfail = Math.min(failuresOf(names), failuresOf(theirs));
  return { names, servfail, asked, open, late };
}

function failuresOf(views: readonly Pick<NameView, 'outcomes'>[]): number {
  return views.reduce((sum, { outcomes }) => sum + failures(outcomes), 0);
}

/** The server that fails most; an upstream if most of the failures come from there. */
function worstServer(
  observed: Observations,
  names: readonly NameView[],
  servfail: number,
): { readonly worst: ServerView | undefined; readonly isUpstream: boolean } {
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
  const views = observed.backends.size > 1 ? observed.backends.list : observed.servers.list;
  const isUpstream = causes.length > 0;
  const [worst] = (isUpstream ? causes : views).toSorted(
    (one, other) => failures(other.outcomes) - failures(one.outcomes),
  );
  return { worst, isUpstream };
}

/** @param beyond the cause at a server behind this one, with a colon; empty if none is seen */
function titleOf(
  { zone, isAllOutside, isUpstream }: FailingNames,
  error: string,
  beyond: string,
): string {
  if (zone !== null)
    return `Names in ${zone} fail with ${error}, while ${isAllOutside ? 'cluster names do not' : 'other external names are answered'}${beyond}`;
  return isAllOutside
    ? `External names fail with ${error}, while cluster names do not${isUpstream ? ': the upstream is unusable' : ''}`
    : `Some names always fail with ${error}, while others never do${beyond}`;
}

function outsideText({ zone, isUpstream }: FailingNames): string {
  if (zone !== null)
    return `All external names that were queried are in ${zone}. If names in other zones also fail, forwarding to the upstream is at fault, and otherwise the servers or the signatures (DNSSEC) of this zone are.`;
  return isUpstream
    ? 'No external name is answered, while cluster names are. Forwarding to the upstream fails, not these names.'
    : 'No other external name was queried. If another one also fails, forwarding to the upstream is at fault.';
}

function namesText(
  { isAllOutside, sinceMs, failing, fine }: FailingNames,
  onlyAaaa: boolean,
): string {
  return `${isAllOutside ? '' : 'The failures depend on the name. '}${sinceMs === null ? '' : `Since ${clock(sinceMs)}, `}${failing} ${failing === 1 ? 'name has' : 'names have'} never been answered${onlyAaaa ? ' for AAAA, although the A queries are answered (possibly from a cache)' : ''}, while ${fine} other ${fine === 1 ? 'name has' : 'names have'} never failed.`;
}

function whyOf(error: string, byName: FailingNames | null): string {
  if (error !== 'SERVFAIL')
    return `${error} comes from a server that does not understand or support the query’s options (EDNS, cookies), type or operation. The DNS server passes it on from its upstream.`;
  return byName?.isUpstream === true
    ? 'The server answers cluster names from its own data, but gets nothing usable from its upstream for other names. The upstream is down, refuses or fails itself, or the connection to it fails (with DNS over TLS, perhaps because of a certificate). Programs retry, try the next search domain, or fail.'
    : 'The server could not get an answer itself, because its upstream did not reply or replied with an error, or the signatures do not verify. Programs retry, try the next search domain, or fail. musl (Alpine) fails after 5 s.';
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
