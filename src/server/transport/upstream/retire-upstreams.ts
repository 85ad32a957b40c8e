/** Closes upstreams that are no longer configured. */
import type { Clock } from '../../base/clock.ts';

/** Milliseconds after which no query can still be waiting for an upstream. */
const RETIRE_MS = 6000;

/**
 * Closes upstreams once no query can be waiting for them. Until then, this keeps nothing else of their configuration in
 * memory, as long as they do not either. Otherwise, rapid reloads would leave a dozen configurations in memory,
 * including caches.
 */
export function retireUpstreams(clock: Clock, upstreams: readonly { close(): void }[]): void {
  clock.after(RETIRE_MS, () => upstreams.forEach((upstream) => upstream.close()));
}
