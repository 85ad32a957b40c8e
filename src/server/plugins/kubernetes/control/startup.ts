/** Waits for the first listing. */
import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { waitBeforeServing } from '../../../engine/contract/startup.ts';
import type { ClusterPublisher } from './publisher.ts';

/**
 * Waits until everything has been listed once, but no longer than `timeoutMs`, and logs the wait as CoreDNS does. It
 * ends early if the API server does not answer, because external names do not depend on it.
 */
export function waitForListing(
  publisher: ClusterPublisher,
  parts: { readonly clock: Clock; readonly log: Log; readonly timeoutMs: number },
): Promise<void> {
  const late = 'starting server with unsynced Kubernetes API';
  return waitBeforeServing({
    ...parts,
    whenReady: (run) =>
      publisher.whenSettled(() => {
        if (!publisher.synced) parts.log.warning(late);
        run();
      }),
    everyMs: 500,
    waiting: 'waiting for Kubernetes API before starting server',
    late,
  });
}
