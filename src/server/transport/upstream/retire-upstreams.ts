/** The end of upstreams that a configuration no longer has. */
import type { Clock } from '../../base/clock.ts';

/** Milliseconds after which no query can wait for an upstream. */
const RETIRE_MS = 6000;

/**
 * Closes upstreams once no query can wait for them. Until then this keeps nothing else of their
 * configuration in memory, if they do not: of reloads that follow each other, a dozen would be
 * there, caches and all.
 */
export function retireUpstreams(clock: Clock, upstreams: readonly { close(): void }[]): void {
  clock.after(RETIRE_MS, () => upstreams.forEach((upstream) => upstream.close()));
}
