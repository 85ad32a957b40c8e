/** Sorted times: search, and runs without a pause. */

/** Returns the number of times that are at most `ms`. @param times in ascending order */
export function countUpTo(times: readonly number[], ms: number): number {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (times[middle]! <= ms) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Queries in the order of their times, in runs. @param goesOn whether the next query belongs to the run of the one before */
export function runsOf<T extends { readonly sentMs: number }>(
  queries: readonly T[],
  goesOn: (before: T, next: T) => boolean,
): readonly (readonly T[])[] {
  const runs: T[][] = [];
  for (const each of queries.toSorted((one, other) => one.sentMs - other.sentMs)) {
    const run = runs.at(-1);
    if (run !== undefined && goesOn(run.at(-1)!, each)) run.push(each);
    else runs.push([each]);
  }
  return runs;
}
