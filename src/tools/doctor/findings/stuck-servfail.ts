/** SERVFAIL replies that a cache repeats. */
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, noOutcomes, wrong, type Outcomes } from '../observe/outcomes.ts';
import { failedInSilence } from '../observe/consequences.ts';
import { failedExchanges, failsAnew, isSoonOver } from '../observe/failed-queries.ts';
import { parentOf } from '../observe/domain-of-name.ts';
import { upstreams } from '../observe/roles.ts';
import { failingDomain } from '../observe/search-domains.ts';
import { CACHED_FAILURE_SHARE, QUICK_FAILURES } from '../thresholds/errors.ts';
import {
  FELT_SHARE,
  FROM_UPSTREAM_SHARE,
  MANY_ERRORS,
  MIN_CASES,
  SPARED_SHARE,
} from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';
import { listed } from '../texts.ts';

const REPEATED = 'Names always fail, and a cache repeats the SERVFAIL at once';

export const stuckServfail: FindingKind = {
  code: 'ND4007',
  title: 'A failure is cached, so the same names get SERVFAIL at once, again and again',
  name: 'a cached failure',
  inCapture(observed, claims) {
    const behind = upstreams(observed);
    const isOfSilence = failedInSilence(observed, claims);
    const isAnew = failsAnew(observed, behind);
    const kept = observed.names.list.filter(
      ({ name, type, quickFailures, outcomes, denial, servers }) =>
        !claims.names.has(name) &&
        !isOfSilence(name, type) &&
        !failsUpstream(servers, behind) &&
        !observed.domains.isOfCluster(name) &&
        quickFailures >= MANY_ERRORS &&
        quickFailures >= QUICK_FAILURES.quick * outcomes.servfail &&
        (outcomes.found === 0 || (denial?.count ?? 0) >= QUICK_FAILURES.denied * outcomes.servfail),
    );
    if (observed.total.servfail === 0) return excluded('no SERVFAIL was seen');
    const old = kept.filter((view) => !isAnew(view));
    const ofFailingZone = inFailingZone(observed, old, isAnew);
    const stuck = old.filter((view) => !ofFailingZone(view));
    if (stuck.length < kept.length && stuck.length === 0)
      return excluded(
        'names fail again whenever a server queries them, and a cache only repeats the failure',
      );
    // A server that fails for everything at once has no cache to blame.
    if (stuck.length === 0 || stuck.length > QUICK_FAILURES.names * observed.names.size)
      return excluded('failures are not answered from a cache');
    // A name that fails at once with every search domain is queried again for each.
    const domain = failingDomain(observed, claims);
    if (domain !== null)
      return excluded(`names below ${domain} fail, whether or not they were queried before`);
    const names = stuck.map(({ name }) => name);
    const keys = new Set(names);
    const fine = othersFine(observed, stuck);
    const before = stuck.filter(({ outcomes }) => outcomes.found > 0).length;
    const times = stuck.reduce((sum, { quickFailures }) => sum + quickFailures, 0);
    if (fine === 0 && !isUpstreamFine(observed, behind)) {
      if (before === 0) return excluded('all names that go to an upstream fail, all the time');
      if (times < CACHED_FAILURE_SHARE * ofOutside(observed).servfail)
        return excluded('all names that go to an upstream fail, many of them slowly');
    }
    for (const name of names) claims.names.add(name);
    // Without the upstream, the capture shows only the cached failures.
    const isOpen = before === 0 && behind.size === 0;
    return {
      title: isOpen ? REPEATED : this.title,
      severity: times >= FELT_SHARE * observed.total.asked ? 'critical' : 'warning',
      confidence: 0.85,
      seen: [
        `${times} queries for ${listed([...keys])} got SERVFAIL in about a millisecond, too soon for any upstream to have been queried.`,
        fine > 0 && `${fine} queries for other external names were answered at the same time.`,
        fine === 0 && before > 0 && `${before} of these names and types had been found before.`,
        isOpen &&
          'The capture does not include the upstream, so it does not show whether it still fails.',
      ],
      why: isOpen
        ? 'The cache returns a failure from its upstream. Either the names still fail there, because the zone’s servers do not answer or refuse (a lame delegation) or its signatures do not verify. Or the upstream has recovered but the cache keeps the failure (before CoreDNS 1.14.4, serve_stale does so for up to an hour).'
        : 'The cache stores an upstream failure and returns it to all clients, for longer than the failure lasted. Before CoreDNS 1.14.4, serve_stale also serves failures as old answers, for up to an hour.',
      fix: [
        'Determine why the name failed at first by querying the upstream, as shown below. While it fails there, leave the cache unchanged, because it protects the upstream from retries.',
        'If the upstream answers by now, use CoreDNS 1.14.4 or later, and with serve_stale also its verify option. Restart the DNS pods one by one to empty their caches.',
        'Where the upstream recovers quickly, cache failures for a shorter time: cache { servfail 1s }. Do not use 0, or every client retry goes to the failing upstream.',
      ],
      prove: isOpen
        ? `ndots query ${names[0]} @UPSTREAM also gets SERVFAIL; an answer would show that the cache is at fault`
        : `ndots query ${names[0]} @UPSTREAM is answered`,
      disproved: isOpen
        ? 'another DNS server with the same upstream answers these names'
        : 'the upstream itself returns SERVFAIL for these names',
      exchanges: failedExchanges(observed, (name) => keys.has(name)),
    };
  },
};

/** The results of queries for external names. */
function ofOutside({ names, domains }: Observations): Outcomes {
  const sum = noOutcomes();
  for (const { name, outcomes } of names.list)
    if (!domains.isOfCluster(name)) addOutcomes(sum, outcomes);
  return sum;
}

/** Queries for other external names that were answered while these failed. */
function othersFine({ ways }: Observations, stuck: readonly NameView[]): number {
  const fromMs = stuck.reduce((least, { denial }) => Math.min(least, denial!.fromMs), Infinity);
  const toMs = stuck.reduce((most, { denial }) => Math.max(most, denial!.toMs), -Infinity);
  const { outside } = ways.between(fromMs, toMs);
  // Answered queries for the failing names do not count as others.
  const own = stuck.reduce((sum, { outcomes }) => sum + outcomes.asked - wrong(outcomes), 0);
  return Math.max(0, outside.asked - wrong(outside) - own);
}

/** True if the capture shows an upstream that answers (nearly) without failures. */
function isUpstreamFine({ servers }: Observations, behind: ReadonlySet<string>): boolean {
  return servers.list.some(
    ({ address, outcomes }) =>
      behind.has(address) &&
      outcomes.asked >= MIN_CASES &&
      wrong(outcomes) <= SPARED_SHARE * outcomes.asked,
  );
}

/** True if the failures come from the upstream rather than a cache. */
function failsUpstream(servers: NameView['servers'], behind: ReadonlySet<string>): boolean {
  let [theirs, all] = [0, 0];
  for (const [address, { servfail }] of servers) {
    all += servfail;
    if (behind.has(address)) theirs += servfail;
  }
  return all > 0 && theirs >= FROM_UPSTREAM_SHARE * all;
}

/**
 * True if other names of the same domain fail whenever a server queries them, while none of them is
 * answered. Then the zone fails, and not only a cache.
 */
function inFailingZone(
  { names: { list } }: Observations,
  kept: readonly NameView[],
  isAnew: (view: NameView) => boolean,
): (view: NameView) => boolean {
  const own = new Set(kept.map(({ name }) => name));
  const domains = Map.groupBy(
    list.filter(({ name, outcomes }) => !own.has(name) && outcomes.asked > outcomes.lost),
    ({ name }) => parentOf(name),
  );
  return ({ name, denial }) => {
    const others = domains.get(parentOf(name)) ?? [];
    const fromMs = denial?.fromMs ?? -Infinity;
    const isAnswered = others.some(({ answeredMs }) =>
      [...answeredMs.values()].some((ms) => ms > fromMs),
    );
    return !isAnswered && others.some((view) => isAnew(view) && !isSoonOver(view));
  };
}
