/** Waits until a verb should end: by Ctrl-C, or by a signal to the process. */
import { EXIT } from './command.ts';

/** Milliseconds for a verb to print its results and close its resources after the signal. */
const GRACE_MS = 1000;

const asked = new AbortController();
let listens = false;
let endsItself = false;
let printsLog = false;
let overdue: (code: number) => void = () => undefined;

/**
 * Resolves with the exit code of a verb that did not end in time after a signal, else never. If
 * nothing in this file is used, the first SIGINT or SIGTERM ends the process as usual.
 */
export const interrupted: Promise<number> = new Promise((resolve) => (overdue = resolve));

/**
 * Aborts at the first SIGINT or SIGTERM. The verb then has a second to end, and another signal of
 * the same kind ends the process.
 */
export function interruptSignal(): AbortSignal {
  if (listens) return asked.signal;
  listens = true;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      asked.abort();
      if (!endsItself) setTimeout(() => overdue(EXIT.interrupted), GRACE_MS);
    });
  return asked.signal;
}

/**
 * The same for a verb that runs until the signal and takes time to end. @param prints `log`: the
 * verb continues even if its output cannot be written
 */
export function untilSignal(prints: 'log' | 'data' = 'data'): AbortSignal {
  endsItself = true;
  printsLog = prints === 'log';
  return interruptSignal();
}

/** True if the verb continues when its output cannot be written, such as on a full disk. */
export function outlivesOutput(): boolean {
  return printsLog;
}

export function wasInterrupted(): boolean {
  return asked.signal.aborted;
}
