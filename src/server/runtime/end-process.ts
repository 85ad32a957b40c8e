/**
 * The end of the process. The runtime's own waits for its threads and then runs the exit handlers
 * of all native code, and either can wait forever. That of koffi calls fsync for standard error. It
 * prints a failure there while it holds the lock of that stream, and waits for the lock: where a
 * seccomp profile refuses fsync, or the disk of the log is full, a container of one verb never
 * ended. Once the C library can be called, the kernel ends the process without all this.
 */
import { flushCompileCache } from 'node:module';

let exitNow: ((code: number) => void) | null = null;

/** @param exit ends the process without exit handlers */
export function endProcessWith(exit: (code: number) => void): void {
  exitNow = exit;
}

/** Ends the process, without waiting for its threads. To be called once all output is written. */
export function endProcess(code: number): never {
  if (exitNow !== null) {
    // The next start needs it, and only the runtime's own end would write it.
    flushCompileCache();
    exitNow(code);
  }
  process.exit(code);
}
