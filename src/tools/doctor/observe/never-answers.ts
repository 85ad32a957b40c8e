/** Servers that always fail for certain names. */
import { MIN_CASES } from '../thresholds/evidence.ts';
import type { NameView } from './name-view.ts';

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
