/** Saves memory during long reads by releasing what was only needed at startup. */
import { unmapUnusedCode } from '../../../server/runtime/program-pages.ts';

/** Short captures finish earlier. Later, the heap of a long one would have grown beside this code. */
const AFTER_MS = 300;

/**
 * Releases startup code from memory once reading takes a while.
 * @returns a function that cancels this
 */
export function readLean(): () => void {
  const timer = setTimeout(unmapUnusedCode, AFTER_MS).unref();
  return () => clearTimeout(timer);
}
