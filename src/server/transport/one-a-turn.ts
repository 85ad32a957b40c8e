/** Lets long work (zone transfers) alternate with a thread's other work. */

const waiting: (() => void)[] = [];

/**
 * Runs a piece of work in its own event loop turn. Pieces from several jobs run in sequence, with all other pending
 * work in between. A transfer message takes only a fraction of a millisecond, but a thousand transfers may be in
 * progress. Their messages in a single turn would delay every query.
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
