/** Each worker's memory, and the default number of workers. */
import { memoryShare } from '../../runtime/memory-share.ts';

const MIB = 1024 * 1024;

/** Returns one worker, or two with four or more CPUs. */
export function defaultWorkers(processors: number): number {
  return processors >= 4 ? 2 : 1;
}

/** A worker's own code and tables, with a full cache, in MiB. */
const EMPTY_MB = 24;
/** More is useless: an index of 100 000 pods and a full cache take a small part of it. */
const MOST_MB = 256;
/**
 * The workers' heaps together take at most three quarters of the remaining memory. A worker may briefly exceed its
 * limit before the runtime ends it.
 */
const TIMES = 4 / 3;

/**
 * Returns the maximum MiB of JavaScript objects per worker: enough for its share of waiting queries, but so few that a
 * worker that fills its heap ends alone.
 * @param limit bytes that the process may use; Infinity: no limit
 */
export function workerHeapMb(limit: number, workers: number): number {
  const terms = { times: TIMES * workers, least: 8 * MIB, unlimited: MOST_MB * MIB };
  return Math.min(MOST_MB, EMPTY_MB + Math.floor(memoryShare(limit, terms) / MIB));
}
