/** Waiting for the first listing. */
import { every, type Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ClusterPublisher } from './publisher.ts';

const LOG_EVERY_MS = 500;

/** Waits until everything has been listed once, at most `timeoutMs`, and says in the log what it waits for (as CoreDNS). */
export function waitForListing(
  publisher: ClusterPublisher,
  {
    clock,
    log,
    timeoutMs,
  }: { readonly clock: Clock; readonly log: Log; readonly timeoutMs: number },
): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      told.cancel();
      timeout.cancel();
      resolve();
    };
    const told = every(clock, LOG_EVERY_MS, () =>
      log.info('waiting for Kubernetes API before starting server'),
    );
    const timeout = clock.after(Math.max(0, timeoutMs), () => {
      log.warning('starting server with unsynced Kubernetes API');
      done();
    });
    publisher.whenSynced(done);
  });
}
