/** Each client's balance of replies. */

/** Number of accounts in a set. A lookup examines all of them. */
const WAYS = 8;

/**
 * A fixed-size table of token buckets with 64-bit keys, whose hashes clients cannot predict. In a full set, a new
 * account replaces the least recently used one. A flood of invented accounts therefore takes time but no memory. Each
 * account gets its rate per second, and can save up at most one second's worth (and at least one reply). It can owe at
 * most a window's worth, so a client that stops is free again after one window at the latest.
 */
export class Accounts {
  readonly #sets: number;
  readonly #high: Int32Array;
  readonly #low: Int32Array;
  readonly #balance: Float64Array;
  /** Clock time of the last use in milliseconds; -1 if the slot is free. */
  readonly #used: Float64Array;
  /** Number of limited replies since the last one that slipped. */
  readonly #slips: Uint8Array;
  readonly #windowSeconds: number;
  /** The account that `spend` used last. */
  #slot = 0;

  evictions = 0;

  constructor(size: number, windowSeconds: number) {
    let sets = 1;
    while (sets * WAYS < size) sets *= 2;
    this.#sets = sets;
    const slots = sets * WAYS;
    this.#high = new Int32Array(slots);
    this.#low = new Int32Array(slots);
    this.#balance = new Float64Array(slots);
    this.#used = new Float64Array(slots).fill(-1);
    this.#slips = new Uint8Array(slots);
    this.#windowSeconds = windowSeconds;
  }

  /**
   * Deducts one from the account.
   * @returns false if this overdraws the account
   */
  spend(high: number, low: number, perSecond: number, now: number): boolean {
    const most = Math.max(1, perSecond);
    const slot = this.#find(high, low);
    const used = this.#used[slot]!;
    let balance = this.#balance[slot]!;
    if (used < 0 || this.#high[slot] !== high || this.#low[slot] !== low) {
      if (used >= 0 && now - used < 1000 * this.#windowSeconds) this.evictions++;
      this.#high[slot] = high;
      this.#low[slot] = low;
      this.#slips[slot] = 0;
      balance = most;
    } else if (now > used) {
      balance = Math.min(most, balance + ((now - used) / 1000) * perSecond);
    }
    balance = Math.max(balance - 1, -this.#windowSeconds * perSecond);
    this.#balance[slot] = balance;
    this.#used[slot] = Math.max(now, used, 0);
    this.#slot = slot;
    return balance >= 0;
  }

  /** True for every `ratio`th reply that is limited on the most recently overdrawn account; never true if 0. */
  slips(ratio: number): boolean {
    if (ratio === 0) return false;
    const limited = this.#slips[this.#slot]! + 1;
    this.#slips[this.#slot] = limited >= ratio ? 0 : limited;
    return limited >= ratio;
  }

  /** Returns the account's slot or, failing that, a free or the least recently used one in the same set. */
  #find(high: number, low: number): number {
    const from = (low & (this.#sets - 1)) * WAYS;
    let oldest = from;
    for (let slot = from; slot < from + WAYS; slot++) {
      const used = this.#used[slot]!;
      if (used >= 0 && this.#high[slot] === high && this.#low[slot] === low) return slot;
      if (used < this.#used[oldest]!) oldest = slot;
    }
    return oldest;
  }
}
