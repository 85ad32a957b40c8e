/** How fast queries over UDP leave for one upstream. */

/** Queries are young for one to two of these, milliseconds. */
const EPOCH_MS = 5;
/** After so many epochs without any reply it is not the upstream's being busy that keeps it silent. */
const SILENT_EPOCHS = 40;

/**
 * How many queries may leave for one upstream before it answers. What a server has not read yet lies in its socket's buffer
 * (by default some 160 to 270 queries on Linux) and is lost when that is full, which costs a client seconds; so a burst waits
 * for the replies to its beginning.
 *
 * Only young queries count: while the upstream answers anything, older ones have been read, and a name that takes seconds to find
 * holds up nobody. When it falls silent (other programs have its processor, say) all count that were sent since, for 200 ms.
 */
export class Pacing {
  readonly #limit: number;
  #epoch = 0;
  /** Sent in this epoch and in the one before, and not answered. */
  #young = 0;
  #older = 0;
  /** Sent earlier in a silence that lasts, and not answered. */
  #old = 0;
  /** When there was a reply last, or the silence was given up. */
  #heardIn = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Milliseconds until what is young now has grown older. */
  get epochMs(): number {
    return EPOCH_MS;
  }

  /** Whether another query may leave. */
  admits(now: number): boolean {
    this.#advance(Math.floor(now / EPOCH_MS));
    return this.#young + this.#older + (this.#silent ? this.#old : 0) < this.#limit;
  }

  /** A query leaves. @returns its epoch, for `ended` */
  sent(): number {
    this.#young++;
    return this.#epoch;
  }

  /** A query that was sent in `epoch` is over. @param heard whether by something that came from there */
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
