/** Lets long work (zone transfers) alternate with the other work of a thread. */

const waiting: (() => void)[] = [];

/**
 * Runs a piece of work in an event loop turn of its own. Pieces of several jobs run one after the
 * other, with all other pending work in between: a transfer message takes a fraction of a
 * millisecond. But a thousand transfers may be in progress, and their messages in a single turn
 * would delay every query.
 * @param run must not throw
 */
export function oneATurn(run: () => void): void {
  if (waiting.push(run) === 1) setImmediate(next);
}

function next(): void {
  const run = waiting.shift()!;
  if (waiting.length > 0) setImmediate(next);
  run();
}
