/** Limits the rate of UDP queries to one upstream. */

/** Length of an epoch in milliseconds. A query counts as young for between one and two epochs. */
const EPOCH_MS = 5;
/** Number of epochs without a reply after which something other than load must be causing the upstream's silence. */
const SILENT_EPOCHS = 40;

/**
 * Limits how many queries are sent to an upstream before it answers. Unread queries wait in its socket buffer, which
 * holds about 160 to 270 queries by default on Linux. When the buffer is full, queries are lost, and each loss costs a
 * client seconds. A burst therefore waits for replies to its first queries. Only young queries count. As long as the
 * upstream answers anything, it has read the older ones, so a slow name does not delay others. If it falls silent (for
 * example because other programs occupy its CPU), all queries sent since then count for 200 ms.
 */
export class Pacing {
  readonly #limit: number;
  #epoch = 0;
  /** Unanswered queries from the current and the previous epoch. */
  #young = 0;
  #older = 0;
  /** Unanswered queries sent earlier during the current silence. */
  #old = 0;
  /** Epoch of the last reply. It is moved forward when we stop waiting for the silence to end. */
  #heardIn = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Milliseconds until the currently young queries are no longer young. */
  get epochMs(): number {
    return EPOCH_MS;
  }

  /** Returns true if another query may be sent. */
  admits(now: number): boolean {
    this.#advance(Math.floor(now / EPOCH_MS));
    return this.#young + this.#older + (this.#silent ? this.#old : 0) < this.#limit;
  }

  /**
   * Counts a query that is being sent.
   * @returns its epoch, to be passed to `ended`
   */
  sent(): number {
    this.#young++;
    return this.#epoch;
  }

  /**
   * Counts the end of a query that was sent in `epoch`.
   * @param heard true if the upstream sent anything
   */
  ended(epoch: number, heard: boolean): void {
    if (heard) this.#heardIn = this.#epoch;
    if (epoch === this.#epoch) this.#young--;
    else if (epoch === this.#epoch - 1) this.#older--;
    else if (this.#old > 0) this.#old--;
  }

  get #silent(): boolean {
    return this.#heardIn < this.#epoch - 1;
  }

  #advance(epoch: number): void {
    if (epoch === this.#epoch) return;
    const next = epoch === this.#epoch + 1;
    const aged = this.#older + (next ? 0 : this.#young);
    this.#older = next ? this.#young : 0;
    this.#young = 0;
    this.#epoch = epoch;
    if (epoch - this.#heardIn > SILENT_EPOCHS) this.#heardIn = epoch - 2;
    else if (this.#silent) {
      this.#old += aged;
      return;
    }
    this.#old = 0;
  }
}
