/** Who holds memory for somebody else. */
export interface Holder {
  /** Bytes held right now. */
  readonly held: number;
  /** Lets go of everything, at once. */
  destroy(): void;
}

/**
 * Keeps what many connections hold for their clients (replies not read, messages not finished, queries that wait for room)
 * within one budget: each may be modest and all together too much. When it is exceeded, who has held something for longest
 * loses its connection.
 */
export class HeldBytes<T extends Holder> {
  /** Bytes, in all. */
  budget: number;
  readonly #evicted: () => void;
  /** As last told, the longest holding first. */
  readonly #holders = new Map<T, number>();
  #total = 0;

  constructor(budget: number, evicted: () => void) {
    this.budget = budget;
    this.#evicted = evicted;
  }

  /** Bytes held in all, as last told: never less than is really held, since what clients read meanwhile is told late. */
  get total(): number {
    return this.#total;
  }

  /** Tells what `holder` holds now. May destroy holders, this one included. */
  tell(holder: T, bytes: number): void {
    this.#set(holder, bytes);
    if (this.#total <= this.budget) return;
    // Only the first are looked at: all of them, for each byte that somebody sends at the limit, would be a weapon.
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
