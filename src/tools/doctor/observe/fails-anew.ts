/** Names that fail whenever a server asks for them, so that a cache only repeats the failure. */
import { RCODE } from '../../../server/wire/iana.ts';
import { isWithin } from '../../../server/wire/within-zone.ts';
import { FAILS_ANEW, FAILURE_KEPT_MS } from '../thresholds/errors.ts';
import { expiredZones } from './failing-zones.ts';
import { isAtOnce, type NameView } from './name-view.ts';
import type { Observations } from './observations.ts';

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
