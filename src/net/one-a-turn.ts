/** Zones on their way, in or out, and the rest of the thread's work. */

const waiting: (() => void)[] = [];

/**
 * Runs a piece of work in a turn of the event loop of its own: pieces of several that never pause come one after the other, and whatever
 * else the thread has to do comes in between. All of them in one turn would hold up everybody: a message of a transfer takes a fraction of a
 * millisecond, and a thousand may be under way.
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
