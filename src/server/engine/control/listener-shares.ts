/** Each listener's default limits, derived from the process's memory limit. */
import { memoryShare } from '../../runtime/memory-share.ts';
import { limits } from '../../transport/limits/limits.ts';
import type { ListenerShares } from '../contract/endpoints.ts';

const MIB = 1024 * 1024;
/**
 * A query that waits for an upstream takes about 3 KiB, measured, plus half as much garbage before it is collected.
 * Queries on one transport get half of the free memory, because another transport may have as many.
 */
const TIMES = 9000;
/** Memory of each worker after the second, regardless of its zones; measured. */
const WORKER = 16 * MIB;
/** Fewer would affect ordinary clients while an upstream is slow. */
const LEAST = 4096;
/**
 * While memory is short, the connections that stay may take this part of it: a quarter of the memory above the mark.
 */
const SPARED = 1 / 16;
/**
 * Replies that clients do not read may take this part of memory per listener. They cost three times as much, measured,
 * and several listeners may be filled at a time.
 */
const HELD = 1 / 32;
/** The replies of some clients that read slowly. */
const HELD_LEAST = MIB;
/** Memory of as many connections as a listener has without a limit; measured. */
const CONNECTIONS = 64 * MIB;

/**
 * Returns the shares for each listener of each worker.
 * @param limit bytes that the process may use; Infinity: no limit
 */
export function listenerShares(limit: number, workers: number): ListenerShares {
  const unlimited = limits.waiting.default;
  const left = limit - WORKER * Math.max(0, workers - 2);
  const all = memoryShare(left, { times: TIMES, least: LEAST, unlimited: unlimited * workers });
  return {
    waiting: Math.min(unlimited, Math.floor(all / workers)),
    heldBytes: Math.min(
      limits.heldBytes.default,
      Math.max(HELD_LEAST, Math.floor((limit * HELD) / workers)),
    ),
    spared: Math.min(1, (limit * SPARED) / CONNECTIONS / workers),
  };
}
