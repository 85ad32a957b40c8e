/** Servers that always fail for certain names. */
import { MIN_CASES } from '../thresholds/evidence.ts';
import type { NameView } from './name-view.ts';

/** True if the server fails for these names and never answers any of them. */
export function neverAnswers(address: string, names: readonly NameView[]): boolean {
  let failed = 0;
  for (const { servers } of names)
    for (const [server, { found, nodata, nxdomain, servfail, error }] of servers) {
      if (server !== address) continue;
      if (found + nodata + nxdomain > 0) return false;
      failed += servfail + error;
    }
  return failed >= MIN_CASES;
}
