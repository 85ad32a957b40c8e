/** Waiting with a limit. */
import type { Clock } from '../../base/clock.ts';

/**
 * Waits for what may never come, at most `limitMs`. A rejection counts as having come: the caller looks at it by itself.
 * @returns whether it came in time
 */
export function within(
  clock: Clock,
  limitMs: number,
  awaited: PromiseLike<unknown>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(limitMs, () => resolve(false));
    const came = (): void => {
      timer.cancel();
      resolve(true);
    };
    awaited.then(came, came);
  });
}
