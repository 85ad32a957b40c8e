/** Names that are queried before they exist. */
import type { NameView, ServerTimes } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { clock, fromTo, listed, sentence } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import {
  countdown,
  countsDown,
  isOneEntry,
  isRemembered,
  isWithoutTtl,
} from '../observe/remembered-denial.ts';
import { NEW_NAME } from '../thresholds/search.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

export const newName: FindingKind = {
  code: 'ND8003',
  title: 'A new name stays invisible because its absence is cached',
  name: 'a cached "no such name"',
  inCapture(observed, claims) {
    const cached = observed.names.list.filter((view) => {
      const { name, negativeTtls, outcomes, lastNegativeMs, firstFoundMs } = view;
      if (claims.names.has(name) || isWithoutTtl(observed, view)) return false;
      if (outcomes.nxdomain < MIN_CASES || outcomes.found === 0) return false;
      // Several caches expire at different times.
      return firstFoundMs < lastNegativeMs
        ? isRemembered(observed, view)
        : countsDown(negativeTtls);
    });
    if (cached.length === 0) {
      const unseen = withoutTtl(observed, claims);
      const [one] = unseen;
      for (const { name } of unseen) claims.names.add(name);
      if (one !== undefined)
        return {
          ...told(observed, unseen),
          confidence: 0.6,
          seen: [
            `${namesOf(unseen)} got NXDOMAIN ${one.outcomes.nxdomain} times ${fromTo(one.firstNegativeMs, one.lastNegativeMs)}, ${
              one.firstFoundMs > one.lastNegativeMs
                ? `and has been found since ${clock(one.firstFoundMs)}.`
                : `and was found from ${clock(one.firstFoundMs)} on. At first the two answers alternated, because several caches expire at different times.`
            }`,
            'The capture contains only the beginning of these answers, so it does not show whether their TTLs count down, as in cached answers (capture with tcpdump -s 0).',
          ],
        };
    }
    const candidates = observed.names.list.filter(
      ({ negativeTtls }) => negativeTtls.length >= MIN_CASES,
    );
    if (candidates.length === 0) return unknown('no missing name was queried repeatedly');
    if (cached.length === 0)
      return excluded(
        `${candidates.length} names that were repeatedly missing are not found later`,
      );
    for (const { name } of cached) claims.names.add(name);
    const hidden = cached.every(isOneEntry) ? entryTexts(observed, cached) : null;
    if (hidden !== null) return { ...told(observed, cached), ...hidden };
    return {
      ...told(observed, cached),
      severity: cached.some(lasts) ? 'critical' : 'warning',
      confidence: 0.9,
      seen: [`For ${namesOf(cached)}, ${timesOf(cached[0]!)}`],
    };
  },
};

/** The texts for servers behind one address, one of which has a cached denial. */
function entryTexts(
  observed: Observations,
  cached: readonly NameView[],
): Pick<FoundCause, 'title' | 'severity' | 'confidence' | 'seen' | 'why' | 'fix' | 'disproved'> {
  const names = namesOf(cached);
  const [{ outcomes, serverTimes, negativeTtls }] = cached as [NameView];
  const [{ server, untilMs }] = serverTimes as [ServerTimes];
  const ttls = countdown(negativeTtls).map(({ ttl }) => ttl);
  const isOwn = cached.every(({ name }) => observed.domains.isOfCluster(name));
  return {
    title:
      'One of several servers behind an address returns a cached NXDOMAIN for a name that exists',
    severity: 'critical',
    confidence: 0.88,
    seen: [
      sentence(
        `For ${names}, ${server} answered ${outcomes.found + outcomes.nodata} times that the name exists and, in between, ${outcomes.nxdomain} times with NXDOMAIN`,
      ),
      `The TTL of the NXDOMAIN replies only counts down (${ttls.slice(0, 5).join(', ')}), and all of them expire at about ${clock(untilMs)}, so they are one cache entry of one server. The other servers behind ${server} do not have it.`,
    ],
    why: 'One of the servers looked up the name before it existed, or when its upstream did not know it, and cached NXDOMAIN for the TTL in the zone’s SOA record. The others looked it up later and have the answer. Which one a client gets is chance.',
    fix: [
      `Restart the servers (DNS pods) behind ${server} one by one, or clear their caches. Otherwise, the name stays missing at one of them until ${clock(untilMs)}.`,
      isOwn
        ? 'Set cache { denial 9984 5 } for the cluster’s zone, or cache { disable denial cluster.local } as in kubeadm’s Corefile.'
        : 'Limit the time for which denials are cached (cache { denial 9984 30 } in the Corefile), and lower the negative TTL of the zone (its SOA record).',
    ],
    disproved:
      'the server denies the name again with a full TTL (then its upstreams do not have the same names, ND4005)',
  };
}

/** Describes a server's last denial of the name, and lists the servers that also denied it. */
function timesOf({ serverTimes, negativeTtls }: NameView): string {
  const denying = serverTimes.filter(({ missingMs }) => missingMs > -Infinity);
  const isThrough = ({ missingMs, existsMs }: ServerTimes): boolean =>
    existsMs >= missingMs && existsMs < Infinity;
  const shown = ({ server }: ServerTimes): readonly number[] =>
    countdown(negativeTtls.filter((each) => each.server === server)).map(({ ttl }) => ttl);
  // A server that keeps denying the name, or whose change from denial to answer is in the capture.
  const [one] = denying.toSorted(
    (here, there) =>
      Number(keeps(there) && shown(there).length > 1) -
        Number(keeps(here) && shown(here).length > 1) ||
      Number(isThrough(there)) - Number(isThrough(here)) ||
      shown(there).length - shown(here).length,
  );
  const { server, missingMs, existsMs } = one!;
  const ttls = shown(one!);
  const denied = `${server} returned NXDOMAIN until ${clock(missingMs)}${ttls.length > 1 ? ` with a TTL that counts down (${ttls.slice(0, 5).join(', ')})` : ''}`;
  const then =
    existsMs === Infinity
      ? ' and still did at the end of the capture, although another server has the name.'
      : existsMs >= missingMs
        ? `, then an address at ${clock(existsMs)}.`
        : `, although some of its replies contain an address from ${clock(existsMs)} on, because the caches behind it expire at different times.`;
  const others = denying.filter((each) => each !== one);
  const alike = others.filter(isThrough);
  const keeping = others.filter(keeps);
  const lastMs = (all: readonly ServerTimes[]): number =>
    Math.max(...all.map((each) => each.missingMs));
  return [
    denied + then,
    ...(alike.length > 0
      ? [
          `${alike.length} more ${alike.length === 1 ? 'server denied' : 'servers denied'} it, too, ${alike.length === 1 ? '' : 'the last one '}until ${clock(lastMs(alike))}.`,
        ]
      : []),
    ...(keeping.length > 0
      ? [
          `${listed(keeping.map((each) => each.server))} still returned NXDOMAIN at ${clock(lastMs(keeping))}.`,
        ]
      : []),
  ].join(' ');
}

/** True if the server still denies the name at the end of the capture. */
function keeps({ existsMs }: ServerTimes): boolean {
  return existsMs === Infinity;
}

/** True if a server denies the name long after others have it. */
function lasts({ serverTimes, firstFoundMs }: NameView): boolean {
  return serverTimes.some(
    (each) => keeps(each) && each.missingMs - firstFoundMs >= NEW_NAME.feltMs,
  );
}

/**
 * Names that were missing and repeatedly queried until they were found for good. The capture cuts
 * off the end of negative answers, and so their TTL. Empty if there are none, or too many to be new.
 */
function withoutTtl(observed: Observations, claims: Claims): readonly NameView[] {
  const found = observed.names.list.filter((view) => {
    const { name, outcomes, firstNegativeMs, lastNegativeMs, firstFoundMs } = view;
    return (
      !claims.names.has(name) &&
      isWithoutTtl(observed, view) &&
      outcomes.nxdomain >= NEW_NAME.asked &&
      outcomes.found >= NEW_NAME.found &&
      lastNegativeMs - firstNegativeMs >= NEW_NAME.lastsMs &&
      (firstFoundMs > lastNegativeMs || isRemembered(observed, view))
    );
  });
  return new Set(found.map(({ name }) => name)).size <= NEW_NAME.names ? found : [];
}

/** The parts that both cases share. */
function told(
  observed: Observations,
  cached: readonly NameView[],
): Omit<FoundCause, 'seen' | 'confidence'> {
  const keys = new Set(cached.map(({ name }) => name));
  return {
    severity: 'warning',
    why: 'A client queried the name before it existed. Each cache on the way (the node’s, CoreDNS’s, the program’s own) stores "no such name" for the TTL that came with it, and keeps returning it after the name has been created.',
    fix: [
      'Set cache { denial 9984 5 } for the cluster’s zone, or cache { disable denial cluster.local } as in kubeadm’s Corefile. Do the same in the node-local cache.',
      'Create the Service before its clients start, or make the clients retry.',
    ],
    prove: `run ndots query ${cached[0]!.name} @POD for each DNS pod; the TTL in NXDOMAIN replies counts down`,
    disproved: 'the TTL does not count down (then the server does not have the name yet)',
    exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
  };
}

function namesOf(cached: readonly NameView[]): string {
  return listed(cached.map(({ name }) => name));
}
