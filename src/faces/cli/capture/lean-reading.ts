/** Saves memory during long reads by releasing what was only needed at startup. */
import { unmapUnusedCode } from '../../../server/runtime/program-pages.ts';

/** Short captures finish earlier. */
const AFTER_MS = 1000;

/**
 * Releases startup code from memory once reading takes a while.
 * @returns a function that cancels this
 */
export function readLean(): () => void {
  const timer = setTimeout(unmapUnusedCode, AFTER_MS).unref();
  return () => clearTimeout(timer);
}
