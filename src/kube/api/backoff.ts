import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';

/** Waits that double from failure to failure, with jitter, and start over after a healthy while. */
export class Backoff {
  readonly #clock: Clock;
  readonly #random: Random;
  #nextMs = firstMs;
  #failures = 0;
  #lastAt = -Infinity;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** The wait before the next try, milliseconds: between half and one and a half times the nominal one. */
  fail(): number {
    const now = this.#clock.now();
    if (now - this.#lastAt > forgetMs) this.succeed();
    const nominal = this.#nextMs;
    this.#nextMs = Math.min(mostMs, 2 * nominal);
    this.#failures++;
    const wait = nominal / 2 + this.#random.integer(Math.max(1, Math.round(nominal)));
    this.#lastAt = now + wait;
    return wait;
  }

  succeed(): void {
    this.#nextMs = firstMs;
    this.#failures = 0;
  }
}

/** Short, since most failures are one dropped connection and freshness is what this is for. */
const firstMs = 250;
const mostMs = 30_000;
/** No failure for so long: the next one is a new story. */
const forgetMs = 2 * 60_000;
