/** Memory that starting has used, given back to the system. */
import type { Clock } from './clock.ts';

/** The first queries come at once, and many of them: they are not kept waiting. */
const AFTER_MS = 1000;
/** By then the other threads have collected, too. */
const THEN_MS = 500;

/**
 * Gives back what starting has left behind (parsed files, functions that ran once), a second or `afterMs` from now. To be called when a
 * thread has begun to serve, or has done what it does seldom. Does nothing unless the runtime was started with `--expose-gc`.
 * @param then runs when all threads that began together have done so
 */
export function settleMemory(
  clock: Clock,
  then: () => void = () => undefined,
  afterMs: number = AFTER_MS,
): void {
  clock.after(afterMs, () => {
    const gc = (globalThis as { gc?: (options: object) => void }).gc;
    gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    clock.after(THEN_MS, then);
  });
}
