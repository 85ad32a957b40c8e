/** Records the true values of names over virtual time. */

interface Era {
  readonly sinceMs: number;
  readonly value: string | null;
}

/** Stores each name's values, where null means that the name does not exist. */
export class Truth {
  readonly #eras = new Map<string, Era[]>();

  /** Changes a name's value from now on. */
  set(nowMs: number, name: string, value: string | null): void {
    const eras = this.#eras.get(name);
    if (eras === undefined) this.#eras.set(name, [{ sinceMs: nowMs, value }]);
    else eras.push({ sinceMs: nowMs, value });
  }

  /** The current value of each name, to be restored later with `set`. */
  current(): ReadonlyMap<string, string | null> {
    return new Map([...this.#eras].map(([name, eras]) => [name, eras.at(-1)!.value]));
  }

  /** Returns the value at a time, or undefined if the name was never set. */
  at(nowMs: number, name: string): string | null | undefined {
    return this.#eras.get(name)?.findLast(({ sinceMs }) => sinceMs <= nowMs)?.value;
  }

  /** Returns all values that a name had between two times, inclusive. */
  between(fromMs: number, toMs: number, name: string): ReadonlySet<string | null> {
    const eras = this.#eras.get(name) ?? [];
    const first = Math.max(
      0,
      eras.findLastIndex(({ sinceMs }) => sinceMs <= fromMs),
    );
    return new Set(
      eras
        .slice(first)
        .filter(({ sinceMs }) => sinceMs <= toMs)
        .map(({ value }) => value),
    );
  }
}
