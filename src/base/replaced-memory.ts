/** Shared memory that nobody answers from any more: old versions of zones and of hosts. */
import type { Clock, Timer } from './clock.ts';
import { collectMemory } from './settle-memory.ts';

/** Less is not worth a pause, bytes. */
const WORTH = 1024 * 1024;
/** What changes often is collected together. */
const AFTER_MS = 15_000;
/** More is not waited for, bytes, where nobody has said: a pause delays some queries, but memory is not without end. */
const MOST = 32 * 1024 * 1024;
/** A thread that is busier than this, part of its time, goes on answering. */
const BUSY = 0.1;

/**
 * Has old versions of large data collected in this thread. The runtime would leave them for as long as it has no other reason: shared
 * memory counts as nothing for it, and a thread that answers leaves no garbage. Each thread that has a view of a version holds all of it.
 */
export class ReplacedMemory {
  readonly #clock: Clock;
  readonly #isBusy: () => boolean;
  readonly #most: number;
  #bytes = 0;
  #timer: Timer | null = null;

  /**
   * @param isBusy whether the thread has had much to do since it was asked last
   * @param most bytes that are not waited for any more
   */
  constructor(clock: Clock, isBusy: () => boolean = busySince(), most: number = MOST) {
    this.#clock = clock;
    this.#most = most;
    this.#isBusy = isBusy;
  }

  /** A version of so many bytes has been let go. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= this.#most) this.#plan(0);
    else if (this.#bytes >= WORTH) this.#plan(AFTER_MS);
  }

  #plan(afterMs: number): void {
    if (this.#timer !== null && afterMs > 0) return;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(afterMs, () => {
      this.#timer = null;
      if (afterMs > 0 && this.#isBusy()) return this.#plan(afterMs);
      this.#bytes = 0;
      collectMemory();
    });
  }
}

function busySince(): () => boolean {
  const { performance } = globalThis;
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization > BUSY;
  };
}
