/**
 * A table by two keys with a limit: neither is made part of a text for it, which a busy capture
 * would do a million times.
 */

/** Values by both keys, made on first use; null once the table is full. */
export class PairMap<A, B, V> {
  readonly #values = new Map<A, Map<B, V>>();
  readonly #list: V[] = [];
  readonly #most: number;
  /** The number of values beyond the limit. */
  leftOut: number = 0;

  constructor(most: number) {
    this.#most = most;
  }

  at(one: A, other: B, make: (one: A, other: B) => V): V | null {
    const found = this.get(one, other);
    if (found !== undefined) return found;
    if (this.#list.length >= this.#most) {
      this.leftOut++;
      return null;
    }
    const value = make(one, other);
    this.#list.push(value);
    const beside = this.#values.get(one);
    if (beside === undefined) this.#values.set(one, new Map([[other, value]]));
    else beside.set(other, value);
    return value;
  }

  get(one: A, other: B): V | undefined {
    return this.#values.get(one)?.get(other);
  }

  get size(): number {
    return this.#list.length;
  }

  clear(): void {
    this.#values.clear();
    this.#list.length = 0;
  }

  /** In the order of their making. */
  get list(): readonly V[] {
    return this.#list;
  }
}
