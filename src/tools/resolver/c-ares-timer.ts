/**
 * When a program that uses c-ares notices a time-out: at once, if it sleeps for as long as c-ares
 * tells it; or at the next tick of a timer of its own, which starts with the first query and
 * restarts whenever something is received (Node.js).
 */
import type { Clock, Timer } from '../../server/base/clock.ts';

/** The timer starts from a clock reading taken shortly before the query is sent. */
const lagMs = 1;

interface CaresTimerEntry {
  readonly at: number;
  readonly run: () => void;
}

/** Runs the handlers of time-outs when the modelled program checks for them. */
export class TimeoutTimer {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #waiting = new Set<CaresTimerEntry>();
  #ticking: Timer | null = null;

  /** @param tickMs milliseconds between two checks; 0: time-outs are noticed at once */
  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  /** Runs `run` at the first check after that many milliseconds. */
  after(ms: number, run: () => void): Timer {
    if (this.#tickMs === 0) return this.#clock.after(ms, run);
    const waiting = { at: this.#clock.now() + ms, run };
    this.#waiting.add(waiting);
    this.#ticking ??= this.#clock.after(this.#tickMs - lagMs, () => this.#tick());
    return { cancel: () => this.#waiting.delete(waiting) };
  }

  /** Restarts the timer because something was received. */
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
