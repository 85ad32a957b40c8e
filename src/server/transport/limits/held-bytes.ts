/** Something that holds memory for a client. */
export interface Holder {
  readonly held: number;
  destroy(): void;
}

/**
 * Keeps the memory that connections hold for their clients within one budget. This includes unread replies, incomplete
 * messages and queries that wait for room. Each connection holds little, but together they can hold too much. When the
 * budget is exceeded, the connection that has been holding memory longest is closed.
 */
export class HeldBytes<T extends Holder> {
  /** Bytes for all holders together. */
  budget: number;
  readonly #evicted: () => void;
  /** The number of bytes each holder last reported. The one that has been holding memory longest comes first. */
  readonly #holders = new Map<T, number>();
  #total = 0;

  constructor(budget: number, evicted: () => void) {
    this.budget = budget;
    this.#evicted = evicted;
  }

  /** The sum of all bytes last reported. It is never too low, because it is updated late when clients read data. */
  get total(): number {
    return this.#total;
  }

  /** Reports how much `holder` holds now. This may destroy holders, including the one reporting. */
  tell(holder: T, bytes: number): void {
    this.#set(holder, bytes);
    if (this.#total <= this.budget) return;
    // Check only the first few. At the limit, checking all of them for each received byte could be exploited for an
    // attack.
    for (const each of this.#holders.keys()) {
      this.#set(each, each.held);
      if (this.#total <= this.budget) return;
      if (!this.#holders.has(each)) continue;
      this.#set(each, 0);
      this.#evicted();
      each.destroy();
    }
  }

  forget(holder: T): void {
    this.#set(holder, 0);
  }

  #set(holder: T, bytes: number): void {
    this.#total += bytes - (this.#holders.get(holder) ?? 0);
    if (bytes === 0) this.#holders.delete(holder);
    else this.#holders.set(holder, bytes);
  }
}
