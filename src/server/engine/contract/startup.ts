/** Delays serving until the server's data is loaded. */
import { every, type Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** The condition to wait for, and the lines to log until it is met. */
export interface StartupWait {
  /** Calls back when there is nothing more to wait for, possibly at once. */
  readonly whenReady: (run: () => void) => void;
  readonly timeoutMs: number;
  /** Logged every `everyMs` milliseconds while waiting. */
  readonly waiting: string;
  readonly everyMs: number;
  /** Logged on timeout, after which the server serves without the data. */
  readonly late: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Waits until everything is ready, for at most `timeoutMs`. Never rejects. */
export function waitBeforeServing(wait: StartupWait): Promise<void> {
  const { whenReady, timeoutMs, waiting, everyMs, late, clock, log } = wait;
  return new Promise((resolve) => {
    const done = (): void => {
      told.cancel();
      timeout.cancel();
      resolve();
    };
    const told = every(clock, everyMs, () => log.info(waiting));
    const timeout = clock.after(Math.max(0, timeoutMs), () => {
      log.warning(late);
      done();
    });
    whenReady(done);
  });
}
