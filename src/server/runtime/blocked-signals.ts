/** Unblocks a signal that the runtime blocks. */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** <asm-generic/signal.h>; both architectures have these numbers. */
const SIG_UNBLOCK = 1;
const SIGUSR1 = 10;
/** Bytes of the C library's `sigset_t`. */
const SET_SIZE = 128;

/**
 * Lets this thread receive SIGUSR1, which the flag `--disable-sigusr1` has blocked since the start
 * of the process (docs/decisions/sigusr1.md). A pending signal arrives now.
 * @returns false: there is no foreign function interface, so nothing changed
 */
export function unblockUserSignal(): boolean {
  return (
    withMemory(SET_SIZE, ({ address, words }) => {
      words[0] = 1 << (SIGUSR1 - 1);
      return libc().sigprocmask(SIG_UNBLOCK, address, 0) === 0;
    }) ?? false
  );
}
