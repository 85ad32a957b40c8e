/** Unblocks a signal that the runtime blocks. */
import { libc } from './libc.ts';
import { withMemory } from './memory.ts';

/** <asm-generic/signal.h>; the same number on both architectures. */
const SIG_UNBLOCK = 1;
const SIGUSR1 = 10;
/** Size of the C library's `sigset_t`, in bytes. */
const SET_SIZE = 128;

/**
 * Lets this thread receive SIGUSR1, which `--disable-sigusr1` has blocked since the process started
 * (docs/decisions/sigusr1.md). A pending signal is delivered at once.
 * @returns false if there is no foreign function interface, so nothing changed
 */
export function unblockUserSignal(): boolean {
  return (
    withMemory(SET_SIZE, ({ address, words }) => {
      words[0] = 1 << (SIGUSR1 - 1);
      return libc().sigprocmask(SIG_UNBLOCK, address, 0) === 0;
    }) ?? false
  );
}
