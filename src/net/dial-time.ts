/** The time that connecting to an upstream takes. */

/** Bounds of the time a connection may take to be made, milliseconds. */
const LEAST_MS = 1000;
const MOST_MS = 30_000;
/** Weight of the newest measurement. */
const WEIGHT = 0.25;

/** How long connecting to an upstream takes, and hence how long to wait for it (CoreDNS: twice the running average). */
export class DialTime {
  #averageMs = MOST_MS / 2;

  get limitMs(): number {
    return Math.min(MOST_MS, Math.max(LEAST_MS, 2 * this.#averageMs));
  }

  learn(tookMs: number): void {
    this.#averageMs += WEIGHT * (tookMs - this.#averageMs);
  }
}
