/** Closes upstreams that are no longer configured. */
import type { Clock } from '../../base/clock.ts';

/** Milliseconds after which no query can still be waiting for an upstream. */
const RETIRE_MS = 6000;

/**
 * Closes upstreams once no query can be waiting for them. Until then, it holds no references to the rest of their
 * configuration. Otherwise, rapid reloads would leave a dozen configurations, including caches, in memory.
 */
export function retireUpstreams(clock: Clock, upstreams: readonly { close(): void }[]): void {
  clock.after(RETIRE_MS, () => upstreams.forEach((upstream) => upstream.close()));
}
