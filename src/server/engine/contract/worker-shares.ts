/** The memory of each worker, and the default number of workers. */
import { memoryShare } from '../../runtime/memory-share.ts';

const MIB = 1024 * 1024;

/** One worker, two from four CPUs on. */
export function defaultWorkers(processors: number): number {
  return processors >= 4 ? 2 : 1;
}

/** A worker's own code and tables, with a full cache, MiB. */
const EMPTY_MB = 24;
/** More has no use: an index of 100 000 pods and a full cache take a small part of it. */
const MOST_MB = 256;
/**
 * The workers' heaps together take at most three quarters of the remaining memory: a worker may
 * exceed its limit for a moment before the runtime ends it.
 */
const TIMES = 4 / 3;

/**
 * MiB of JavaScript objects that a worker may have: as many as its share of queries that wait
 * takes, and so few that one that fills its heap ends alone.
 * @param limit bytes that the process may take; Infinity: no limit
 */
export function workerHeapMb(limit: number, workers: number): number {
  const terms = { times: TIMES * workers, least: 8 * MIB, unlimited: MOST_MB * MIB };
  return Math.min(MOST_MB, EMPTY_MB + Math.floor(memoryShare(limit, terms) / MIB));
}
