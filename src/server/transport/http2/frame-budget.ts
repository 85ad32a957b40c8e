/** Limits frames without content, such as PING, because an HTTP/2 peer could send them endlessly. */

/** Number of such frames that a peer may send in a burst, and the number per second after that. */
const BURST = 1000;
const PER_SECOND = 100;
/** Each frame with content allows this many others. */
const EARNED = 8;

/**
 * Counts control frames and empty frames. Keep-alives, and the probes a gRPC server sends along with data, stay far
 * below the limit.
 */
export class FrameBudget {
  readonly #now: () => number;
  #left = BURST;
  #at: number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#at = now();
  }

  /** Counts a frame with content. */
  earn(): void {
    this.#left = Math.min(BURST, this.#left + EARNED);
  }

  /**
   * Counts a frame without content.
   * @returns true if there have been too many
   */
  spend(): boolean {
    if (this.#left >= 1) {
      this.#left--;
      return false;
    }
    const now = this.#now();
    this.#left = Math.min(BURST, this.#left + ((now - this.#at) / 1000) * PER_SECOND);
    this.#at = now;
    if (this.#left < 1) return true;
    this.#left--;
    return false;
  }
}
