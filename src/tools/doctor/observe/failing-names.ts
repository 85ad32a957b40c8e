/** Names that always fail, while others never do. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import { ALWAYS_FAILS } from '../thresholds/errors.ts';
import { MOST } from '../thresholds/evidence.ts';
import { registeredDomainOf } from './domain-of-name.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import type { Outcomes } from './outcomes.ts';

/** Queries that were answered with an error other than REFUSED. */
export function failures({ servfail, error }: Outcomes): number {
  return servfail + error;
}

/** The reach of failures that depend on the name: some names, one zone, or all external names. */
export interface FailingNames {
  readonly failing: number;
  readonly fine: number;
  /** Only external names fail, and none of the queried ones is answered. */
  readonly isAllOutside: boolean;
  /** The external zone that all failing names are in, without a final dot; null: there are several, or one name. */
  readonly zone: string | null;
  /** True if several zones fail and only external names do: the upstream fails for every name. */
  readonly isUpstream: boolean;
  /** Start of the failures, milliseconds since 1970; null if the names have always failed. */
  readonly sinceMs: number | null;
}

/**
 * Counts names that always fail, or fail since some moment, while others never do. Null if
 * failures do not depend on the name.
 */
export function failingNames(
  { names: { list }, domains }: Observations,
  names: readonly NameView[],
): FailingNames | null {
  const counts = new Map<string, number>();
  let sinceMs = Infinity;
  for (const { name, outcomes, denial, answeredMs } of names) {
    if (outcomes.found + outcomes.nodata + outcomes.nxdomain > 0) {
      // Two caches may keep an answer for different times.
      if (denial === null || denial.count < MOST * failures(outcomes)) return null;
      if ([...answeredMs.values()].some((ms) => ms >= denial.fromMs)) return null;
      sinceMs = Math.min(sinceMs, denial.fromMs);
    }
    counts.set(name, (counts.get(name) ?? 0) + failures(outcomes));
  }
  if ([...counts.values()].some((count) => count < ALWAYS_FAILS.asked)) return null;
  const others = list.filter(({ name }) => !counts.has(name));
  const found = new Set(others.flatMap(({ name, outcomes }) => (outcomes.found > 0 ? name : [])));
  const isOutside = (name: string): boolean => !domains.isOfCluster(name);
  const isAllOutside = ![...found].some(isOutside) && [...counts.keys()].every(isOutside);
  // A server that denies names of the cluster has its data as well.
  const denied = new Set(
    others.flatMap(({ name, outcomes }) => (outcomes.nxdomain > 0 && !isOutside(name) ? name : [])),
  );
  const [failing, fine] = [counts.size, found.size];
  const isSeen =
    fine >= ALWAYS_FAILS.fine ||
    (isAllOutside && fine > 0 && failing > 1 && fine + denied.size >= ALWAYS_FAILS.fine);
  if (!isSeen || (!isAllOutside && failing > fine)) return null;
  const common = failing === 0 ? '.' : [...counts.keys()].reduce(commonZone);
  const owner = registeredDomainOf(common);
  const isZone =
    failing > 1 &&
    common.split('.').length > 2 &&
    isOutside(common) &&
    (isAllOutside ||
      [...found].some((name) => isOutside(name) && registeredDomainOf(name) !== owner));
  return {
    ...{ failing, fine, isAllOutside },
    zone: isZone ? common.slice(0, -1) : null,
    isUpstream: isAllOutside && !isZone && failing > 1,
    sinceMs: sinceMs === Infinity ? null : sinceMs,
  };
}
