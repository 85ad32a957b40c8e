/**
 * Detects packets whose time is years away from that of their neighbours. Either a record is damaged, or the clock was
 * set during the capture. A single one would make a one-minute capture seem to last for decades.
 */

/** In milliseconds. No capture has a pause this long between two packets. */
const FAR_MS = 30 * 24 * 3600 * 1000;
/** The year 10000; later times cannot be printed. */
const END_MS = Date.UTC(10_000);

/** True if a packet may have this time, in milliseconds since 1970. */
export function isTime(ms: number): boolean {
  return ms >= 0 && ms < END_MS;
}

/** Receives items in capture order, and passes each one on once the next has a similar time. */
export class SteadyTime<T extends { readonly timeMs: number }> {
  readonly #give: (item: T) => void;
  readonly #copy: (item: T) => T;
  readonly #drop: (item: T) => void;
  #nowMs: number | null = null;
  /** An item that is far from all preceding ones. The next item decides whether time continues from there. */
  #far: T | null = null;

  /**
   * @param copy copies an item whose memory will be reused
   * @param drop receives items whose time fits neither neighbour
   */
  constructor(give: (item: T) => void, copy: (item: T) => T, drop: (item: T) => void) {
    this.#give = give;
    this.#copy = copy;
    this.#drop = drop;
  }

  take(item: T): void {
    const { timeMs } = item;
    if (!isTime(timeMs)) {
      this.#drop(item);
      return;
    }
    const far = this.#far;
    if (far === null) {
      if (this.#nowMs !== null && isNear(timeMs, this.#nowMs)) this.#pass(item);
      else this.#far = this.#copy(item);
      return;
    }
    this.#far = null;
    if (isNear(timeMs, far.timeMs)) this.#pass(far);
    else {
      this.#drop(far);
      if (this.#nowMs === null || !isNear(timeMs, this.#nowMs)) {
        this.#far = this.#copy(item);
        return;
      }
    }
    this.#pass(item);
  }

  /** Ends the input. The next input is not compared with it. */
  end(): void {
    const far = this.#far;
    const isOnly = this.#nowMs === null;
    this.#far = null;
    this.#nowMs = null;
    if (far === null) return;
    if (isOnly) this.#give(far);
    else this.#drop(far);
  }

  #pass(item: T): void {
    this.#nowMs = item.timeMs;
    this.#give(item);
  }
}

function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) < FAR_MS;
}
