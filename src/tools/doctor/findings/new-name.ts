/** Names that are asked for before they exist. */
import type { NameView, ServerTimes } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type Finding, type FindingKind } from './finding.ts';
import { clock, listed } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { countdown, countsDown, isRemembered, isWithoutTtl } from '../observe/remembered-denial.ts';
import { NEW_NAME } from '../thresholds/search.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** A name that was asked for before it existed stays missing for as long as that was remembered. */
export const newName: FindingKind = {
  code: 'ND8003',
  title: 'A new name stays invisible: that it was missing is cached',
  name: 'a cached "no such name"',
  inCapture(observed, claims) {
    const cached = observed.names.list.filter((view) => {
      const { name, negativeTtls, outcomes, lastNegativeMs, firstFoundMs } = view;
      if (claims.names.has(name) || isWithoutTtl(observed, view)) return false;
      if (outcomes.nxdomain < MIN_CASES || outcomes.found === 0) return false;
      // Of several caches each forgets at its own time.
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
            `${namesOf(unseen)}: NXDOMAIN ${one.outcomes.nxdomain} times from ${clock(one.firstNegativeMs)} to ${clock(one.lastNegativeMs)}, ${
              one.firstFoundMs > one.lastNegativeMs
                ? `then found at ${clock(one.firstFoundMs)}, and ever since.`
                : `found from ${clock(one.firstFoundMs)} on, at first alternating with NXDOMAIN and then always, because several caches expire at different times.`
            }`,
            'The capture has only the beginning of these answers, so their TTLs cannot be read: cached answers would count down (tcpdump -s 0).',
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
    return {
      ...told(observed, cached),
      severity: cached.some(lasts) ? 'critical' : 'warning',
      confidence: 0.9,
      seen: [`${namesOf(cached)}: ${timesOf(cached[0]!)}`],
    };
  },
};

/** A server with its last denial of the name, and the servers that also denied it. */
function timesOf({ serverTimes, negativeTtls }: NameView): string {
  const denying = serverTimes.filter(({ missingMs }) => missingMs > -Infinity);
  const isThrough = ({ missingMs, existsMs }: ServerTimes): boolean =>
    existsMs >= missingMs && existsMs < Infinity;
  const shown = ({ server }: ServerTimes): readonly number[] =>
    countdown(negativeTtls.filter((each) => each.server === server)).map(({ ttl }) => ttl);
  // A server that keeps denying it, or that the capture shows from denial to answer.
  const [one] = denying.toSorted(
    (here, there) =>
      Number(keeps(there) && shown(there).length > 1) -
        Number(keeps(here) && shown(here).length > 1) ||
      Number(isThrough(there)) - Number(isThrough(here)) ||
      shown(there).length - shown(here).length,
  );
  const { server, missingMs, existsMs } = one!;
  const ttls = shown(one!);
  const denied = `${server} says NXDOMAIN up to ${clock(missingMs)}${ttls.length > 1 ? ` with a TTL that counts down (${ttls.slice(0, 5).join(', ')})` : ''}`;
  const then =
    existsMs === Infinity
      ? ' and still does at the end of the capture, but another server has it.'
      : existsMs >= missingMs
        ? `, then found at ${clock(existsMs)}.`
        : `, and from ${clock(existsMs)} on that it exists, because the caches behind this address expire at different times.`;
  const others = denying.filter((each) => each !== one);
  const alike = others.filter(isThrough);
  const keeping = others.filter(keeps);
  const lastMs = (all: readonly ServerTimes[]): number =>
    Math.max(...all.map((each) => each.missingMs));
  return [
    denied + then,
    ...(alike.length > 0
      ? [
          `${alike.length} more ${alike.length === 1 ? 'server denies' : 'servers deny'} it, too, ${alike.length === 1 ? '' : 'the last one '}up to ${clock(lastMs(alike))}.`,
        ]
      : []),
    ...(keeping.length > 0
      ? [
          `${listed(keeping.map((each) => each.server))} still ${keeping.length === 1 ? 'says' : 'say'} NXDOMAIN at ${clock(lastMs(keeping))}.`,
        ]
      : []),
  ].join(' ');
}

/** True if the server does not find the name up to the end of the capture. */
function keeps({ existsMs }: ServerTimes): boolean {
  return existsMs === Infinity;
}

/** True if a server denies the name for long after others have it. */
function lasts({ serverTimes, firstFoundMs }: NameView): boolean {
  return serverTimes.some(
    (each) => keeps(each) && each.missingMs - firstFoundMs >= NEW_NAME.feltMs,
  );
}

/**
 * Names that were missing and repeatedly queried, until they were found for good. The capture lacks
 * the end of negative answers, and so their TTL. Empty: there are none, or too many to be new.
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

/** The parts that both kinds share. */
function told(
  observed: Observations,
  cached: readonly NameView[],
): Omit<Finding, 'seen' | 'confidence'> {
  const keys = new Set(cached.map(({ name }) => name));
  return {
    code: 'ND8003',
    title: 'A new name stays invisible: that it was missing is cached',
    severity: 'warning',
    why: 'A client asked before the name existed. Each cache in between (the node’s, CoreDNS’s, the program’s own) stores "no such name" for the TTL that came with it. It still returns that after the name exists.',
    fix: [
      'Set cache { denial 9984 5 } for the cluster’s zone, or cache { disable denial cluster.local } as in kubeadm’s Corefile, on the node-local cache too.',
      'Create the Service before its clients start, or make the clients retry.',
    ],
    prove: `ndots query ${cached[0]!.name} @POD for each DNS pod: the TTL of NXDOMAIN answers counts down`,
    disproved: 'the TTL does not count down, because the server really does not have the name yet',
    exchanges: observed.affected.flatMap((lookup) =>
      lookup.exchanges.filter(({ name }) => keys.has(name)),
    ),
  };
}

function namesOf(cached: readonly NameView[]): string {
  return listed([...new Set(cached.map(({ name }) => name))]);
}
