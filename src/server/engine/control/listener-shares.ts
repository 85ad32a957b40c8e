/** Each listener's default limits, derived from the process's memory limit. */
import { memoryShare } from '../../runtime/memory-share.ts';
import { limits } from '../../transport/limits/limits.ts';
import type { ListenerShares } from '../contract/endpoints.ts';

const MIB = 1024 * 1024;
/**
 * A query that waits for an upstream was measured to take about 3 KiB, plus half as much garbage until it is collected.
 * Queries on one transport get half of the free memory, because another transport may have just as many.
 */
const TIMES = 9000;
/** Measured memory of each worker after the second, regardless of its zones. */
const WORKER = 16 * MIB;
/** A lower limit would affect ordinary clients while an upstream is slow. */
const LEAST = 4096;
/**
 * Share of memory that the remaining connections may use while memory is short. It is a quarter of the memory above the
 * mark.
 */
const SPARED = 1 / 16;
/**
 * Share of memory per listener that replies may use before clients read them. They were measured to cost three times as
 * much, and several listeners may be filled at once.
 */
const HELD = 1 / 32;
/** The replies of some clients that read slowly. */
const HELD_LEAST = MIB;
/** Measured memory of as many connections as a listener has without a limit. */
const CONNECTIONS = 64 * MIB;

/**
 * Returns the shares for each listener in each worker.
 * @param limit bytes that the process may use; Infinity for no limit
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
