/** Waits for Ctrl-C or for a signal that ends a command. */
import { EXIT } from './command.ts';

/** Milliseconds after the signal to print results and close resources. */
const GRACE_MS = 1000;

const asked = new AbortController();
let listens = false;
let endsItself = false;
let printsLog = false;
let overdue: (code: number) => void = () => undefined;

/**
 * Resolves with the exit code if a command fails to end in time after a signal, and otherwise never. If nothing in this
 * file is used, the first SIGINT or SIGTERM ends the process as usual.
 */
export const interrupted: Promise<number> = new Promise((resolve) => (overdue = resolve));

/**
 * Aborts at the first SIGINT or SIGTERM, after which the command has a second to end. A second signal of the same kind
 * ends the process.
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
 * Like `interruptSignal`, but for commands that run until the signal and need time to end.
 * @param prints `log` if the command continues even when its output cannot be written
 */
export function untilSignal(prints: 'log' | 'data' = 'data'): AbortSignal {
  endsItself = true;
  printsLog = prints === 'log';
  return interruptSignal();
}

/** Resolves when the signal aborts, or immediately if it already has. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** True if the command continues even when its output cannot be written, for example because the disk is full. */
export function outlivesOutput(): boolean {
  return printsLog;
}

export function wasInterrupted(): boolean {
  return asked.signal.aborted;
}
