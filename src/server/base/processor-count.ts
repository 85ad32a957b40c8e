/** The number of CPUs for this process. */
import { availableParallelism } from 'node:os';

let count: number | null = null;

/**
 * The number of CPUs that this process may run on when first called: a thread that is restricted
 * later does not count fewer.
 */
export function processorCount(): number {
  count ??= availableParallelism();
  return count;
}
