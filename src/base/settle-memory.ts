import type { Clock } from './clock.ts';

/** The first queries come at once, and many of them: they are not kept waiting. */
const AFTER_MS = 1000;

/**
 * Gives back what starting has left behind (parsed files, functions that ran once), a second from now. To be called when a
 * thread has begun to serve. What it compiled is written to the compile cache before, if there is one: the next start takes it
 * from there. Memory is given back only if the runtime was started with `--expose-gc`.
 * @param then runs last
 */
export function settleMemory(clock: Clock, then: () => void = () => undefined): void {
  clock.after(AFTER_MS, () => {
    process.getBuiltinModule('node:module').flushCompileCache();
    const gc = (globalThis as { gc?: (options: object) => void }).gc;
    gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    then();
  });
}
