/** Counts latencies from 1 µs to an hour in constant memory. The width of each bucket is 1/64 of its value. */

/** Buckets per power of two. */
const STEPS = 64;
const POWERS = 32;

/** A histogram in milliseconds; quantiles are accurate to 1.6%. */
export class Latencies {
  readonly #counts = new Float64Array(STEPS * POWERS);
  #count = 0;
  #max = 0;
  #sum = 0;

  get count(): number {
    return this.#count;
  }

  get max(): number {
    return this.#max;
  }

  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  /** @param ms counts as 0 if negative because the clock was set back */
  add(ms: number): void {
    this.#count++;
    this.#sum += ms;
    if (ms > this.#max) this.#max = ms;
    this.#counts[bucketOf(ms)]!++;
  }

  /** @param share the fraction of times up to and including the result: 0.99 */
  quantile(share: number): number {
    let left = share * this.#count;
    for (let at = 0; at < this.#counts.length; at++) {
      left -= this.#counts[at]!;
      if (left <= 0 && this.#counts[at]! > 0) return Math.min(upperOf(at), this.#max);
    }
    return this.#max;
  }

  /**
   * Counts per interval. The bounds are in milliseconds and ascending, and the last count covers everything above them.
   */
  between(bounds: readonly number[]): readonly number[] {
    const counts = Array<number>(bounds.length + 1).fill(0);
    let bound = 0;
    for (let at = 0; at < this.#counts.length; at++) {
      while (bound < bounds.length && upperOf(at) > bounds[bound]! * (1 + 1 / STEPS)) bound++;
      counts[bound]! += this.#counts[at]!;
    }
    return counts;
  }
}

/** Linear below 64 µs, followed by 64 steps between one power of two and the next. */
function bucketOf(ms: number): number {
  const us = Math.max(0, Math.floor(ms * 1000));
  if (us < STEPS) return us;
  const power = Math.min(POWERS - 1, Math.floor(Math.log2(us)) - 5);
  return Math.min(POWERS * STEPS - 1, power * STEPS + (Math.floor(us / 2 ** (power - 1)) - STEPS));
}

function upperOf(bucket: number): number {
  const power = Math.floor(bucket / STEPS);
  const step = bucket % STEPS;
  if (power === 0) return (step + 1) / 1000;
  return ((STEPS + step + 1) * 2 ** (power - 1)) / 1000;
}
