/** A size-limited map that drops the entries that were not used for longest. */

/**
 * Holds at least the last `most / 2` and at most `most` used entries. Half of them are dropped at once, because finding
 * a Map's oldest entry skips all entries that were deleted before it.
 */
export class RecentlyUsed<K, V> {
  readonly #most: number;
  #young = new Map<K, V>();
  #old = new Map<K, V>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(key: K): V | undefined {
    const found = this.#young.get(key);
    if (found !== undefined || this.#old.size === 0) return found;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: K, value: V): void {
    this.#old.delete(key);
    if (this.#young.size >= this.#most / 2 && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: K): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}
