/** Versions of zones that nobody answers from any more, and the memory that hangs on them. */
import type { Clock, Timer } from '../base/clock.ts';
import { collectMemory } from '../base/settle-memory.ts';
import { bytesOf, type PackedZone } from './packed-zone.ts';

/** Less is not worth a pause, bytes. */
const WORTH = 1024 * 1024;
/** Zones that change often are collected together. */
const AFTER_MS = 15_000;
/** More is not waited for, bytes: a pause delays some queries, but memory is not without end. */
const MOST = 64 * 1024 * 1024;
/** A thread that is busier than this, part of its time, goes on answering. */
const BUSY = 0.1;

/**
 * Has the old versions of zones collected in this thread. The runtime would leave them for as long as it has no other reason: shared
 * memory counts as nothing for it, and a thread that answers leaves no garbage. Each thread that has a view of a zone holds all of it.
 */
export class ReplacedZones {
  readonly #clock: Clock;
  readonly #isBusy: () => boolean;
  #bytes = 0;
  #timer: Timer | null = null;

  /** @param isBusy whether the thread has had much to do since it was asked last */
  constructor(clock: Clock, isBusy: () => boolean = busySince()) {
    this.#clock = clock;
    this.#isBusy = isBusy;
  }

  /** This version has been let go. */
  add(packed: PackedZone | null): void {
    if (packed === null) return;
    this.#bytes += bytesOf(packed);
    if (this.#bytes >= MOST) this.#plan(0);
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
