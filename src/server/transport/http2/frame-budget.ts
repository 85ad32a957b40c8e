/** Limits frames that carry nothing, such as PING: an HTTP/2 peer could send them without end. */

/** Frames that a peer may send at once, and per second from then on. */
const BURST = 1000;
const PER_SECOND = 100;
/** Each frame that carries something makes room for this number of others. */
const EARNED = 8;

/**
 * Counts control frames and empty ones. Keep-alives and the probes of a gRPC server, which come with
 * its data, stay far below the limit.
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

  /** Counts a frame that carries something. */
  earn(): void {
    this.#left = Math.min(BURST, this.#left + EARNED);
  }

  /** Counts a frame that carries nothing. @returns whether there were too many */
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
