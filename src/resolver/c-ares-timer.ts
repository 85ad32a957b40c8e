/**
 * When a program that uses c-ares notices a time-out: at once, if it sleeps for as long as c-ares tells it, or at the
 * next tick of a timer of its own, which starts with the first query and is set back by whatever is received (Node.js).
 */
import type { Clock, Timer } from '../base/clock.ts';

/** The timer is set by a clock that was read a moment before the query is sent. */
const lagMs = 1;

interface Waiting {
  readonly at: number;
  readonly run: () => void;
}

/** Tells a program of its time-outs when it looks for them. */
export class TimeoutTimer {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #waiting = new Set<Waiting>();
  #ticking: Timer | null = null;

  /** @param tickMs milliseconds between two looks; 0 = time-outs are noticed at once */
  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  /** Runs `run` when that many milliseconds have passed and the program looks. */
  after(ms: number, run: () => void): Timer {
    if (this.#tickMs === 0) return this.#clock.after(ms, run);
    const waiting = { at: this.#clock.now() + ms, run };
    this.#waiting.add(waiting);
    this.#ticking ??= this.#clock.after(this.#tickMs - lagMs, () => this.#tick());
    return { cancel: () => this.#waiting.delete(waiting) };
  }

  /** Something came in: the timer starts anew. */
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
