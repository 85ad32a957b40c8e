/** Alternates long work, such as zone transfers, with a thread's other work. */

const waiting: (() => void)[] = [];

/**
 * Runs a piece of work in its own event loop turn. Pieces from several jobs run one after another, with all other
 * pending work in between. A transfer message takes only a fraction of a millisecond, but a thousand transfers may be
 * in progress. Sending all their messages in one turn would delay every query.
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
