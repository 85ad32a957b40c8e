/**
 * Saves memory while captures are read, which takes seconds: returns the memory that only the start
 * needed.
 */
import { unmapUnusedCode } from '../../../server/runtime/program-pages.ts';

/** Short captures are read by then. */
const AFTER_MS = 1000;

/**
 * Gives back the memory of code that only starting needed, once reading takes a while.
 * @returns what calls it off
 */
export function readLean(): () => void {
  const timer = setTimeout(unmapUnusedCode, AFTER_MS).unref();
  return () => clearTimeout(timer);
}
