/** Queries that fail: for names that servers ask again for, or at servers that never answer them. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { FAILS_ANEW, FAILURE_KEPT_MS } from '../thresholds/errors.ts';
import { expiredZones } from './failing-zones.ts';
import { type NameView, isAtOnce } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isFailure } from './outcomes.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/**
 * True if a name's failures are not only old ones of a cache: a server asked again and it failed
 * again, or it did not last longer than a cache may keep it.
 *
 * @param behind the upstreams
 */
export function failsAnew(
  observed: Observations,
  behind: ReadonlySet<string>,
): (view: NameView) => boolean {
  const moments = new Map<string, { count: number; lastMs: number }>();
  for (const each of observed.failed) {
    if (each.rcode !== RCODE.SERVFAIL) continue;
    if (isAtOnce(each) && !behind.has(each.server.address)) continue;
    const known = moments.get(each.name);
    if (known === undefined) moments.set(each.name, { count: 1, lastMs: each.sentMs });
    else if (each.sentMs >= known.lastMs + FAILS_ANEW.apartMs) {
      known.count++;
      known.lastMs = each.sentMs;
    }
  }
  const expired = expiredZones(observed);
  return (view) =>
    (moments.get(view.name)?.count ?? 0) >= FAILS_ANEW.moments ||
    isSoonOver(view) ||
    expired.some(({ zone, server }) => isWithin(view.name, zone) && view.servers.has(server));
}

/** True if it did not fail for longer than any cache keeps a failure. */
export function isSoonOver({ denial }: NameView): boolean {
  return denial !== null && denial.toMs - denial.fromMs < FAILURE_KEPT_MS;
}

/** Queries for these names that failed with an error other than REFUSED. */
export function failedExchanges(
  observed: Observations,
  wanted: (name: string) => boolean,
): Observations['losses'] {
  return observed.affectedExchanges(
    (each) => each.rcode !== RCODE.REFUSED && isFailure(each) && wanted(each.name),
  );
}

/** The servers that fail for these names and never answer any of them. */
export function neverAnswering(names: readonly NameView[]): ReadonlySet<string> {
  const failed = new Map<string, number>();
  const answering = new Set<string>();
  for (const { servers } of names)
    for (const [server, { found, nodata, nxdomain, servfail, error }] of servers) {
      if (found + nodata + nxdomain > 0) answering.add(server);
      failed.set(server, (failed.get(server) ?? 0) + servfail + error);
    }
  const never = [...failed].filter(
    ([server, count]) => count >= MIN_CASES && !answering.has(server),
  );
  return new Set(never.map(([server]) => server));
}
