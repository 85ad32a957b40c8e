/** Counts the CPUs available to this process. */
import { availableParallelism } from 'node:os';

let count: number | null = null;

/**
 * Returns the number of CPUs this process could use at the first call, so restricting a thread later does not lower it.
 */
export function processorCount(): number {
  count ??= availableParallelism();
  return count;
}
