/** Binary search in sorted times. */

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
