/** Measures how long connecting to an upstream takes. */

/** Bounds of the time-out for connecting, in milliseconds. */
const LEAST_MS = 1000;
const MOST_MS = 30_000;
/** Weight of the newest measurement in the running average. */
const WEIGHT = 0.25;

/**
 * The running average of how long connecting to an upstream takes, and the time-out derived from it
 * (as in CoreDNS: twice the average).
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
