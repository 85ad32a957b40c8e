/** Garbage collection pauses, in seconds. */
export interface GcPauses {
  /** For each proportion of the recent collections, the longest pause among that proportion. */
  readonly quantiles: ReadonlyMap<number, number>;
  readonly sum: number;
  readonly count: number;
  /** End of the last collection, in seconds since 1970, or 0 if there was none. */
  readonly last: number;
}

/** Number of recent collections in the quantiles. */
const WINDOW = 256;
/** The quantiles exposed by Go's client. */
const QUANTILES = [0, 0.25, 0.5, 0.75, 1];

/**
 * Observes this thread's garbage collections from now on. The runtime's observer costs a megabyte, so it is not started
 * until it is needed.
 * @returns a function that returns the results so far
 */
export function observeGc(): () => GcPauses {
  const recent: number[] = [];
  let sum = 0;
  let count = 0;
  let last = 0;
  const { PerformanceObserver, performance } = process.getBuiltinModule('node:perf_hooks');
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      recent[count % WINDOW] = duration / 1000;
      sum += duration / 1000;
      count++;
      last = (performance.timeOrigin + startTime + duration) / 1000;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => ({ quantiles: quantilesOf(recent), sum, count, last });
}

/** Without any pauses, all quantiles are 0. */
function quantilesOf(times: readonly number[]): ReadonlyMap<number, number> {
  const sorted = times.toSorted((a, b) => a - b);
  return new Map(
    QUANTILES.map((share) => [share, sorted[Math.round(share * (sorted.length - 1))] ?? 0]),
  );
}
