/**
 * The times at which Go retries with a new id: after the time-out of its resolver, 5 s by default
 * (resolv.conf(5)). Each use has its own tolerance. Milliseconds after the first query.
 */
export const goRepeatMs = {
  /** A lookup continues with the other address family: timers are late, and hardly ever early. */
  ofLookup: { from: 4950, to: 5100 },
  /** Must be certain: programs that query every 5 s are less exact. */
  certain: { from: 4999.8, to: 5020 },
  /** The reply was useless, so a retry is likely anyway. */
  likely: { from: 4700, to: 5600 },
} as const;
