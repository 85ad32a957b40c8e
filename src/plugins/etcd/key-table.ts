/**
 * Keys in the order of their bytes, each with a value: two arrays, since no map finds what begins with a prefix and none is
 * smaller. Keys are strings of bytes (latin1). Adding at the end, as a list does, costs nothing; elsewhere what lies behind moves.
 */
export class KeyTable {
  readonly #keys: string[] = [];
  readonly #values: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  get keys(): readonly string[] {
    return this.#keys;
  }

  get values(): readonly string[] {
    return this.#values;
  }

  get(key: string): string | null {
    const at = this.lowerBound(key);
    return this.#keys[at] === key ? this.#values[at]! : null;
  }

  /** The key as it is kept here, so that no second copy of it need be kept elsewhere. */
  own(key: string): string {
    const at = this.lowerBound(key);
    return this.#keys[at] === key ? this.#keys[at]! : key;
  }

  /** Where the first key stands that is greater than this one. */
  after(key: string): number {
    const at = this.lowerBound(key);
    return this.#keys[at] === key ? at + 1 : at;
  }

  /** @returns the value before, or null */
  set(key: string, value: string): string | null {
    const keys = this.#keys;
    const last = keys.at(-1);
    if (last === undefined || last < key) {
      keys.push(key);
      this.#values.push(value);
      return null;
    }
    const at = this.lowerBound(key);
    if (keys[at] === key) {
      const before = this.#values[at]!;
      this.#values[at] = value;
      return before;
    }
    keys.splice(at, 0, key);
    this.#values.splice(at, 0, value);
    return null;
  }

  /** @returns the value that was there, or null */
  delete(key: string): string | null {
    const at = this.lowerBound(key);
    if (this.#keys[at] !== key) return null;
    this.#keys.splice(at, 1);
    return this.#values.splice(at, 1)[0]!;
  }

  /**
   * Takes away every key that is not among these, which are in order.
   * @returns what was taken away
   */
  retain(sorted: readonly string[]): (readonly [key: string, value: string])[] {
    const keys = this.#keys;
    const values = this.#values;
    const removed: (readonly [string, string])[] = [];
    let kept = 0;
    let at = 0;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      while (at < sorted.length && sorted[at]! < key) at++;
      if (sorted[at] === key) {
        keys[kept] = key;
        values[kept++] = values[i]!;
      } else removed.push([key, values[i]!]);
    }
    keys.length = kept;
    values.length = kept;
    return removed;
  }

  /** Where the first key stands that is not less than this one. */
  lowerBound(key: string): number {
    const keys = this.#keys;
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (keys[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
