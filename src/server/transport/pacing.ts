/** Limits how fast queries over UDP are sent to one upstream. */

/** Length of an epoch in milliseconds; a query counts as young for one to two epochs. */
const EPOCH_MS = 5;
/** After this many epochs without a reply, the upstream is silent for another reason than load. */
const SILENT_EPOCHS = 40;

/**
 * The number of queries that may be sent to one upstream before it answers. Unread queries wait in
 * its socket buffer, by default some 160 to 270 queries on Linux. When it is full, queries are
 * lost, which costs a client seconds. So a burst waits for the replies to its first queries.
 *
 * Only young queries count: while the upstream answers anything, it has read the older ones, and a
 * slow name delays no others. If it falls silent (because other programs occupy its CPU, for
 * example), all queries sent since then count, for 200 ms.
 */
export class Pacing {
  readonly #limit: number;
  #epoch = 0;
  /** Unanswered queries of this epoch and of the previous one. */
  #young = 0;
  #older = 0;
  /** Queries sent earlier during the current silence, and not answered. */
  #old = 0;
  /** The epoch of the last reply, or in which the silence was given up on. */
  #heardIn = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Milliseconds until the queries that are young now are no longer. */
  get epochMs(): number {
    return EPOCH_MS;
  }

  /** True if another query may be sent. */
  admits(now: number): boolean {
    this.#advance(Math.floor(now / EPOCH_MS));
    return this.#young + this.#older + (this.#silent ? this.#old : 0) < this.#limit;
  }

  /** Counts a query that is sent. @returns its epoch, to be passed to `ended` */
  sent(): number {
    this.#young++;
    return this.#epoch;
  }

  /** Counts the end of a query sent in `epoch`. @param heard whether the upstream sent anything */
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
