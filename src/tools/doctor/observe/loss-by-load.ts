/** The dependence of a server's losses on its load. */
import { LOSSY_UPSTREAM } from '../thresholds/transport.ts';
import type { ServerHistory, ServerView } from './server-view.ts';

/** True if the server lost every query in most seconds with losses, so it stopped at times. */
export function losesWholeSeconds({ history }: ServerView): boolean {
  const lossy = history.filter(([, { lost }]) => lost > 0);
  const whole = lossy.filter(([, { asked, lost }]) => lost === asked);
  return whole.length > LOSSY_UPSTREAM.wholeSeconds * lossy.length;
}

interface LossAtLoad {
  /** Queries a second. */
  readonly rate: number;
  readonly share: number;
}

/** Compares the half of the seconds with fewer queries to the other half. Null if the busy half does not lose far more. */
export function lossByLoad(
  history: ServerHistory,
): { readonly calm: LossAtLoad; readonly busy: LossAtLoad } | null {
  const seconds = history.map(([, each]) => each).toSorted((one, other) => one.asked - other.asked);
  if (seconds.length < LOSSY_UPSTREAM.seconds) return null;
  const middle = seconds.length >> 1;
  const calm = { share: lostShare(seconds.slice(0, middle)), rate: seconds[middle - 1]!.asked };
  const busy = { share: lostShare(seconds.slice(middle)), rate: seconds[middle]!.asked };
  return busy.share < LOSSY_UPSTREAM.times * calm.share ? null : { calm, busy };
}

function lostShare(seconds: readonly ServerHistory[number][1][]): number {
  const asked = seconds.reduce((sum, each) => sum + each.asked, 0);
  return seconds.reduce((sum, each) => sum + each.lost, 0) / Math.max(1, asked);
}
