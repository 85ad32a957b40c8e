/** Queries count as perhaps unread for one to two of these, milliseconds: as long as a busy machine lets a server wait. */
const EPOCH_MS = 5;
/** After a timeout the limit is halved, at most once in so many epochs. */
const CALM_EPOCHS = 200;
const LIMIT_MAX = 1 << 16;

/**
 * How many queries may leave for one upstream before it answers. What a server has not read yet lies in its socket's buffer
 * (by default some 160 to 270 queries on Linux) and is lost when that is full, which costs a client seconds; so a burst waits
 * for the replies to its beginning. Only queries sent within the last few milliseconds count: older ones have been read, or
 * lost, and a name that takes seconds to find holds up nobody.
 *
 * An upstream so far away that most replies take longer than that is no reason to wait: while there is more that became old
 * than was answered, the limit doubles. A query that is lost halves it again.
 */
export class Pacing {
  readonly #least: number;
  #limit: number;
  #epoch = 0;
  /** Sent in this epoch and in the one before, and not answered. */
  #young = 0;
  #older = 0;
  /** Answered in this epoch. */
  #answered = 0;
  #wanted = false;
  #calmUntil = 0;

  constructor(limit: number) {
    this.#least = limit;
    this.#limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Whether another query may leave. */
  admits(now: number): boolean {
    this.#advance(Math.floor(now / EPOCH_MS));
    if (this.#young + this.#older < this.#limit) return true;
    this.#wanted = true;
    return false;
  }

  /** A query leaves. @returns its epoch, for `ended` */
  sent(): number {
    this.#young++;
    return this.#epoch;
  }

  /** A query that was sent in `epoch` has its reply, or failed. */
  ended(epoch: number): void {
    this.#answered++;
    if (epoch === this.#epoch) this.#young--;
    else if (epoch === this.#epoch - 1) this.#older--;
  }

  lost(): void {
    if (this.#epoch < this.#calmUntil) return;
    this.#calmUntil = this.#epoch + CALM_EPOCHS;
    this.#limit = Math.max(this.#least, this.#limit >> 1);
  }

  /** Milliseconds until what is young now grows old. */
  get epochMs(): number {
    return EPOCH_MS;
  }

  #advance(epoch: number): void {
    if (epoch === this.#epoch) return;
    const next = epoch === this.#epoch + 1;
    if (this.#wanted && this.#older > this.#answered)
      this.#limit = Math.min(LIMIT_MAX, this.#limit * 2);
    this.#older = next ? this.#young : 0;
    this.#young = 0;
    this.#answered = 0;
    this.#wanted = false;
    this.#epoch = epoch;
  }
}
