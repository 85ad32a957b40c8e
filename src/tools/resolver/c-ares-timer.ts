/**
 * Models when a program notices c-ares timeouts. It may sleep for as long as c-ares requests and notice them
 * immediately. Or, as in Node.js, it notices them at the next tick of a separate timer. That timer starts with the
 * first query and restarts on every arrival.
 */
import type { Clock, Timer } from '../../server/base/clock.ts';

/** In milliseconds. The timer starts from a clock reading shortly before the query is sent. */
const lagMs = 1;

interface CaresTimerEntry {
  readonly at: number;
  readonly run: () => void;
}

export class TimeoutTimer {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #waiting = new Set<CaresTimerEntry>();
  #ticking: Timer | null = null;

  /** @param tickMs milliseconds between checks, or 0 if there is no delay */
  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  /** Calls `run` at the first check after this time. */
  after(ms: number, run: () => void): Timer {
    if (this.#tickMs === 0) return this.#clock.after(ms, run);
    const waiting = { at: this.#clock.now() + ms, run };
    this.#waiting.add(waiting);
    this.#ticking ??= this.#clock.after(this.#tickMs - lagMs, () => this.#tick());
    return { cancel: () => this.#waiting.delete(waiting) };
  }

  received(): void {
    if (this.#ticking === null) return;
    this.#ticking.cancel();
    this.#ticking = this.#clock.after(this.#tickMs, () => this.#tick());
  }

  #tick(): void {
    const now = this.#clock.now();
    this.#ticking = this.#clock.after(this.#tickMs, () => this.#tick());
    const due = [...this.#waiting].filter(({ at }) => at <= now);
    for (const waiting of due) {
      if (this.#waiting.delete(waiting)) waiting.run();
    }
    if (this.#waiting.size > 0) return;
    this.#ticking.cancel();
    this.#ticking = null;
  }
}
