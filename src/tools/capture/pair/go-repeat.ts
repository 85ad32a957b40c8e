/**
 * The times when Go retries with a new ID, which is after its resolver's timeout, 5 s by default (resolv.conf(5)). Each
 * use has a different tolerance. Times are in milliseconds after the first query.
 */
export const goRepeatMs = {
  /** A lookup continues with the other address family. Timers are often late, but hardly ever early. */
  ofLookup: { from: 4950, to: 5100 },
  /** Stricter, because programs that send queries every 5 s are less exact. */
  certain: { from: 4999.8, to: 5020 },
  /** The reply was useless, so a retry is likely anyway. */
  likely: { from: 4700, to: 5600 },
} as const;
