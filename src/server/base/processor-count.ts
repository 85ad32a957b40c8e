/** How many CPUs there are for this process. */
import { availableParallelism } from 'node:os';

let count: number | null = null;

/**
 * The number of CPUs that this process may run on, as it was when first asked: a thread that
 * is kept off some later on does not count fewer.
 */
export function processorCount(): number {
  count ??= availableParallelism();
  return count;
}
