/**
 * Ends the process. Node's own exit waits for its threads and then runs the exit handlers of all native code, and
 * either can hang. koffi's handler calls fsync on standard error. On failure it prints there while holding the stream's
 * lock, and then waits for that same lock. With a seccomp profile that refuses fsync, or a full log disk, such a
 * container never exited. Once the C library can be called, the kernel ends the process directly.
 */
import { flushCompileCache } from 'node:module';

let exitNow: ((code: number) => void) | null = null;

/** @param exit ends the process without running exit handlers */
export function endProcessWith(exit: (code: number) => void): void {
  exitNow = exit;
}

/** Ends the process without waiting for its threads. Call it after all output has been written. */
export function endProcess(code: number): never {
  if (exitNow !== null) {
    // Only the runtime's own exit would write the cache, which the next start needs.
    flushCompileCache();
    exitNow(code);
  }
  process.exit(code);
}
