/** A table with a limit: what comes when it is full is not looked at one by one, and counted. */

/** Values by key, made on first use; null once the table is full. */
export class BoundedMap<K, V> {
  readonly #values = new Map<K, V>();
  readonly #most: number;
  /** How often something had no place. */
  leftOut: number = 0;

  constructor(most: number) {
    this.#most = most;
  }

  at(key: K, make: () => V): V | null {
    let value = this.#values.get(key);
    if (value !== undefined) return value;
    if (this.#values.size >= this.#most) {
      this.leftOut++;
      return null;
    }
    value = make();
    this.#values.set(key, value);
    return value;
  }

  get(key: K): V | undefined {
    return this.#values.get(key);
  }

  get size(): number {
    return this.#values.size;
  }

  get list(): readonly V[] {
    return [...this.#values.values()];
  }
}
