/** Something that holds memory for a client. */
export interface Holder {
  /** Bytes held right now. */
  readonly held: number;
  /** Releases everything immediately. */
  destroy(): void;
}

/**
 * Limits the memory that all connections hold for their clients (unread replies, incomplete messages, queries that wait
 * for room) to one budget. Each holds little, but together it can be too much. When the budget is exceeded, the
 * connection that has been holding memory longest is closed.
 */
export class HeldBytes<T extends Holder> {
  /** Bytes for all holders together. */
  budget: number;
  readonly #evicted: () => void;
  /** The last reported bytes of each holder; the one that has been holding longest comes first. */
  readonly #holders = new Map<T, number>();
  #total = 0;

  constructor(budget: number, evicted: () => void) {
    this.budget = budget;
    this.#evicted = evicted;
  }

  /**
   * Total bytes as last reported. Never less than the actual number, because data that clients have read since is
   * reported late.
   */
  get total(): number {
    return this.#total;
  }

  /** Reports how much `holder` holds now. May destroy holders, including this one. */
  tell(holder: T, bytes: number): void {
    this.#set(holder, bytes);
    if (this.#total <= this.budget) return;
    // Check only the first few: at the limit, checking all of them for each received byte could be used as an attack.
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
