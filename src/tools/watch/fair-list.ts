/** A bounded list that several sources add to. A source that adds without end only displaces its own entries. */

interface Entry<T> {
  readonly item: T;
  readonly source: number | null;
}

export class FairList<T> {
  forgotten = 0;
  readonly #most: number;
  #entries: Entry<T>[] = [];
  #items: readonly T[] | null = [];

  /** @param most the number of entries to keep */
  constructor(most: number) {
    this.#most = most;
  }

  /** The entries, newest last. */
  get items(): readonly T[] {
    this.#items ??= this.#entries.map(({ item }) => item);
    return this.#items;
  }

  /**
   * Adds an entry. A full list discards the oldest entry of a source that has more than half of them. If there is no
   * such source, it discards the oldest of all.
   *
   * @param source null for an entry that does not come from a source
   */
  add(item: T, source: number | null): void {
    this.#entries.push({ item, source });
    this.#items = null;
    if (this.#entries.length <= this.#most) return;
    this.forgotten++;
    const counts = new Map<number, number>();
    for (const { source: each } of this.#entries)
      if (each !== null) counts.set(each, (counts.get(each) ?? 0) + 1);
    const greedy = [...counts].find(([, count]) => 2 * count > this.#entries.length);
    const at =
      greedy === undefined ? 0 : this.#entries.findIndex((each) => each.source === greedy[0]);
    this.#entries.splice(at, 1);
  }
}
