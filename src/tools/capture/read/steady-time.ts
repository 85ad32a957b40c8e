/**
 * Packets whose time is years off those before and after: a damaged record, or a host whose clock
 * was set amid the capture. One of them would make a capture of a minute last for decades.
 */

/** Nobody leaves a capture running, without a packet, for longer than this: milliseconds. */
const FAR_MS = 30 * 24 * 3600 * 1000;
/** The year 10000: what is later has no time of day that could be printed. */
const END_MS = Date.UTC(10_000);

/** Whether packets can be of this time, milliseconds since 1970. */
export function isTime(ms: number): boolean {
  return ms >= 0 && ms < END_MS;
}

/**
 * Takes what has a time, in the order of a capture, and gives it on when what comes next is of the
 * same time.
 */
export class SteadyTime<T extends { readonly timeMs: number }> {
  readonly #give: (item: T) => void;
  readonly #copy: (item: T) => T;
  readonly #drop: (item: T) => void;
  #nowMs: number | null = null;
  /** What is far from all before it: the next one says whether the time goes on from there. */
  #far: T | null = null;

  /**
   * @param copy makes one's own of what is reused after it was taken
   * @param drop is told of what is of another time than all around it
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

  /** The input is over. What another one begins with is held against nothing before. */
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
