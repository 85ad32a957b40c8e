/**
 * When Go asks again: with a new id, when the time-out of its resolver is over (5 s by default, as
 * in resolv.conf(5)). Each use allows for as much as it can afford, milliseconds after the first
 * query.
 */
export const goRepeatMs = {
  /** A lookup goes on at another address family: timers are late, and hardly ever early. */
  ofLookup: { from: 4950, to: 5100 },
  /** The repeat itself has to be certain: programs that ask every 5 s are not as exact. */
  certain: { from: 4999.8, to: 5020 },
  /** The reply was of no use, so that it is likely anyway. */
  likely: { from: 4700, to: 5600 },
} as const;
