/** Each worker's share of memory, and the default number of workers. */
import { memoryShare } from '../../runtime/memory-share.ts';

const MIB = 1024 * 1024;

/** Returns one worker, or two if there are four or more CPUs. */
export function defaultWorkers(processors: number): number {
  return processors >= 4 ? 2 : 1;
}

/** Memory for a worker's own code and tables, including a full cache, in MiB. */
const EMPTY_MB = 24;
/** More is useless, because an index of 100 000 pods and a full cache take only a small part of it. */
const MOST_MB = 256;
/**
 * The workers' heaps together take at most three quarters of the remaining memory. A worker may briefly exceed its
 * limit before the runtime ends it.
 */
const TIMES = 4 / 3;

/**
 * Returns the maximum heap size per worker in MiB. It is enough for the worker's share of waiting queries. It is also
 * small enough that a worker that fills its heap ends alone.
 * @param limit bytes that the process may use; Infinity for no limit
 */
export function workerHeapMb(limit: number, workers: number): number {
  const terms = { times: TIMES * workers, least: 8 * MIB, unlimited: MOST_MB * MIB };
  return Math.min(MOST_MB, EMPTY_MB + Math.floor(memoryShare(limit, terms) / MIB));
}
