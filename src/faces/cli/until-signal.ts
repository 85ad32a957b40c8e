/** Waits until a verb is asked to end: by Ctrl-C, or by a signal to the process. */
import { EXIT } from './command.ts';

/**
 * How long a verb has to end by itself once it was asked to, in milliseconds. In this time it
 * prints what it has found and closes what it holds.
 */
const GRACE_MS = 1000;

const asked = new AbortController();
let listens = false;
let endsItself = false;
let printsLog = false;
let overdue: (code: number) => void = () => undefined;

/**
 * The exit code of a verb that has not ended by itself in time after it was asked to. It never
 * settles otherwise. Where nobody has looked at either signal of this file, the first SIGINT or
 * SIGTERM ends the process as the system does.
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
 * The same for a verb that runs until then, and takes its time to end.
 * @param prints what it prints. A log is worth less than what the verb does, which goes on where
 * nobody takes its lines
 */
export function untilSignal(prints: 'log' | 'data' = 'data'): AbortSignal {
  endsItself = true;
  printsLog = prints === 'log';
  return interruptSignal();
}

/** Whether the verb goes on where what it prints cannot be written: on a full disk, say. */
export function outlivesOutput(): boolean {
  return printsLog;
}

export function wasInterrupted(): boolean {
  return asked.signal.aborted;
}
