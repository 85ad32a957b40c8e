/**
 * The stretch of time in which something happens more often than before and afterwards: a scan
 * statistic (Kulldorff, 1997).
 */
import type { Second } from './server-view.ts';
import { MIN_CHANGE_LIKELIHOOD } from '../thresholds/silence.ts';

/** The number of time slots to compare; they are longer in a longer capture. */
const SLOTS_MAX = 400;

/** From the first to the last of them, milliseconds since 1970. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * @param timesMs when it happened. @param histories queries by server and second. @returns null if
 * it is spread evenly
 */
export function densestStretch(
  timesMs: readonly number[],
  histories: readonly (readonly (readonly [second: number, Second])[])[],
): Stretch | null {
  const asked = new Map<number, number>();
  for (const history of histories)
    for (const [second, each] of history) asked.set(second, (asked.get(second) ?? 0) + each.asked);
  if (asked.size === 0 || timesMs.length === 0) return null;
  const first = [...asked.keys()].reduce((least, second) => Math.min(least, second), Infinity);
  const last = [...asked.keys()].reduce((most, second) => Math.max(most, second), 0);
  const width = Math.ceil((last - first + 1) / SLOTS_MAX);
  const slots = Math.floor((last - first) / width) + 1;
  const slotOf = (second: number): number =>
    Math.min(slots - 1, Math.max(0, Math.floor((second - first) / width)));
  const all = new Float64Array(slots);
  const bad = new Float64Array(slots);
  for (const [second, count] of asked) all[slotOf(second)]! += count;
  for (const ms of timesMs) bad[slotOf(Math.floor(ms / 1000))]! += 1;
  const total = all.reduce((sum, each) => sum + each, 0);
  const count = timesMs.length;
  let best = { from: 0, to: slots - 1, likely: 0 };
  for (let from = 0; from < slots; from++) {
    if (bad[from] === 0) continue;
    let [n, k] = [0, 0];
    for (let to = from; to < slots; to++) {
      n += all[to]!;
      k += bad[to]!;
      if (bad[to] === 0) continue;
      const likely = likelihood(k, n, count, total);
      if (likely > best.likely) best = { from, to, likely };
    }
  }
  if (best.likely < MIN_CHANGE_LIKELIHOOD) return null;
  const within = timesMs.filter((ms) => {
    const slot = slotOf(Math.floor(ms / 1000));
    return slot >= best.from && slot <= best.to;
  });
  return {
    fromMs: within.reduce((least, ms) => Math.min(least, ms), Infinity),
    toMs: within.reduce((most, ms) => Math.max(most, ms), -Infinity),
  };
}

/** The logarithm of how much likelier two rates are than one; 0 if the rest has the higher one. */
function likelihood(k: number, n: number, count: number, total: number): number {
  const [restK, restN] = [count - k, total - n];
  if (n === 0 || k / n <= count / total) return 0;
  return entropy(k, n) + entropy(restK, restN) - entropy(count, total);
}

/** The logarithm of the likelihood of these at their own rate. */
function entropy(k: number, n: number): number {
  if (n <= 0 || k <= 0 || k >= n) return 0;
  return k * Math.log(k / n) + (n - k) * Math.log(1 - k / n);
}
