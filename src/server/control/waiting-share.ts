/** How many queries may wait for their replies where nobody has said. */
import { memoryShare } from '../../base/memory-share.ts';
import { limits } from '../../net/limits.ts';

/**
 * A query that waits for an upstream takes some 3 KiB, measured, and half as much is garbage
 * before it is collected. Those of one transport have half of what is free: another one may have as
 * many.
 */
const TIMES = 9000;
/** What each worker beyond the second takes, whatever it serves; measured. */
const WORKER = 16 * 1024 * 1024;
/** Fewer would be in the way of ordinary clients while an upstream is slow. */
const LEAST = 4096;

/**
 * Queries that may wait at each listener of each worker.
 * @param limit bytes that the process may take; Infinity: no limit
 */
export function waitingShare(limit: number, workers: number): number {
  const unlimited = limits.waiting.default;
  const left = limit - WORKER * Math.max(0, workers - 2);
  const all = memoryShare(left, { times: TIMES, least: LEAST, unlimited: unlimited * workers });
  return Math.min(unlimited, Math.floor(all / workers));
}
