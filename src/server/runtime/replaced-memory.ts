/** Shared memory that is no longer in use: old versions of zones and of hosts files. */
import type { Clock, Timer } from '../base/clock.ts';
import { collectMemory } from './settle-memory.ts';

/** Less than this, in bytes, is not worth the pause of a collection. */
const WORTH = 1024 * 1024;
/** Versions that are replaced within this time, in milliseconds, are collected together. */
const AFTER_MS = 15_000;
/**
 * The default for `most`, in bytes: with more than this waiting, a busy thread collects
 * nevertheless. The pause delays some queries, but memory is limited.
 */
const MOST = 32 * 1024 * 1024;
/** A thread that is busier than this share of its time postpones the collection. */
const BUSY = 0.1;

/**
 * Triggers the garbage collection of old versions of large data in this thread. The runtime would
 * keep them for a long time: it does not count shared memory, and a thread that only answers
 * queries creates no garbage that would cause a collection. The memory of a version is freed only
 * when no thread has a view of it.
 */
export class ReplacedMemory {
  readonly #clock: Clock;
  readonly #isBusy: () => boolean;
  readonly #most: number;
  #bytes = 0;
  #timer: Timer | null = null;

  /**
   * @param isBusy whether the thread has been busy since the last call
   * @param most the collection is not postponed with more bytes than this
   */
  constructor(clock: Clock, isBusy: () => boolean = busySince(), most: number = MOST) {
    this.#clock = clock;
    this.#most = most;
    this.#isBusy = isBusy;
  }

  /** Reports that a version of this many bytes is no longer in use. */
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
