/** Measures how long connecting to an upstream takes. */

/** Bounds of the connection timeout, in milliseconds. */
const LEAST_MS = 1000;
const MOST_MS = 30_000;
/** Weight of the newest measurement in the moving average. */
const WEIGHT = 0.25;

/**
 * The moving average of the time it takes to connect to an upstream, and the timeout derived from it. As in CoreDNS,
 * this is twice the average.
 */
export class DialTime {
  #averageMs = MOST_MS / 2;

  get limitMs(): number {
    return Math.min(MOST_MS, Math.max(LEAST_MS, 2 * this.#averageMs));
  }

  learn(tookMs: number): void {
    this.#averageMs += WEIGHT * (tookMs - this.#averageMs);
  }
}
