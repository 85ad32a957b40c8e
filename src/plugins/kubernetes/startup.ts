/** Waiting for the first listing. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { waitBeforeServing } from '../../server/contract/startup.ts';
import type { ClusterPublisher } from './publisher.ts';

/**
 * Waits until everything has been listed once, at most `timeoutMs`, and says in the log what it
 * waits for (as CoreDNS).
 */
export function waitForListing(
  publisher: ClusterPublisher,
  parts: { readonly clock: Clock; readonly log: Log; readonly timeoutMs: number },
): Promise<void> {
  return waitBeforeServing({
    ...parts,
    whenReady: (run) => publisher.whenSynced(run),
    everyMs: 500,
    waiting: 'waiting for Kubernetes API before starting server',
    late: 'starting server with unsynced Kubernetes API',
  });
}
