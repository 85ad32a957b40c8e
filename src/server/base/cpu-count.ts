/** Counts the CPUs available to this process. */
import { availableParallelism } from 'node:os';

let count: number | null = null;

/**
 * Returns the number of CPUs that this process could use at the first call. Restricting a thread later therefore does
 * not lower the result.
 */
export function cpuCount(): number {
  count ??= availableParallelism();
  return count;
}
