/** A cache of recent results. */
import type { Clock } from './clock.ts';

/**
 * A size-limited map whose entries expire a fixed time after they were added. When it is full, the oldest entry is
 * dropped.
 */
export class Recent<K, V> {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #most: number;
  /** In insertion order, oldest first. */
  readonly #known = new Map<K, { readonly value: V; readonly at: number }>();

  constructor(clock: Clock, freshMs: number, most: number) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#most = most;
  }

  /** Number of entries, including expired ones, which are removed on the next insertion. */
  get size(): number {
    return this.#known.size;
  }

  /** Returns the value, or undefined if it was never added or has expired. */
  get(key: K): V | undefined {
    const known = this.#known.get(key);
    return known !== undefined && this.#isFresh(known.at) ? known.value : undefined;
  }

  put(key: K, value: V): void {
    this.#known.delete(key);
    for (const [oldest, { at }] of this.#known) {
      if (this.#known.size < this.#most && this.#isFresh(at)) break;
      this.#known.delete(oldest);
    }
    this.#known.set(key, { value, at: this.#clock.now() });
  }

  delete(key: K): void {
    this.#known.delete(key);
  }

  #isFresh(at: number): boolean {
    return this.#clock.now() - at < this.#freshMs;
  }
}
