import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

/** Exponential backoff with jitter. The delay resets after some time without failures. */
export class Backoff {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #firstMs: number;
  readonly #mostMs: number;
  #nextMs: number;
  #failures = 0;
  #lastAt = -Infinity;

  /**
   * @param firstMs nominal first delay in milliseconds
   * @param mostMs maximum delay in milliseconds
   */
  constructor(
    clock: Clock,
    random: Random,
    {
      firstMs = 250,
      mostMs = 30_000,
    }: { readonly firstMs?: number; readonly mostMs?: number } = {},
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
    this.#nextMs = firstMs;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Returns the delay before the next attempt in milliseconds, which is the nominal delay ±50%. */
  fail(): number {
    const now = this.#clock.now();
    if (now - this.#lastAt > FORGET_MS) this.succeed();
    const nominal = this.#nextMs;
    this.#nextMs = Math.min(this.#mostMs, 2 * nominal);
    this.#failures++;
    const wait = nominal / 2 + this.#random.integer(Math.max(1, Math.round(nominal)));
    this.#lastAt = now + wait;
    return wait;
  }

  succeed(): void {
    this.#nextMs = this.#firstMs;
    this.#failures = 0;
  }
}

/** Milliseconds without a failure after which the delay resets. */
const FORGET_MS = 2 * 60_000;
