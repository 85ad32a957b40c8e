/** Waits with a time limit. */
import type { Clock } from '../../base/clock.ts';

/**
 * Waits for a promise, for at most `limitMs`. A rejection counts as settled and is handled by the caller.
 * @returns true if it settled in time
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
