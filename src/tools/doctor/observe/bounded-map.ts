/** A map with a limit, beyond which keys are only counted. */

/** Values by key, made on first use; null once the table is full. */
export class BoundedMap<K, V> {
  readonly #values = new Map<K, V>();
  readonly #list: V[] = [];
  readonly #most: number;
  /** The number of values beyond the limit. */
  leftOut: number = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * @param make one function for all calls, since a new one for each exchange costs more than the lookup
   */
  at(key: K, make: (key: K) => V): V | null {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size >= this.#most) {
      this.leftOut++;
      return null;
    }
    const value = make(key);
    this.#values.set(key, value);
    this.#list.push(value);
    return value;
  }

  get(key: K): V | undefined {
    return this.#values.get(key);
  }

  get size(): number {
    return this.#values.size;
  }

  get entries(): readonly (readonly [K, V])[] {
    return [...this.#values];
  }

  clear(): void {
    this.#values.clear();
    this.#list.length = 0;
  }

  /** In the order in which they were created. */
  get list(): readonly V[] {
    return this.#list;
  }
}
