/** A cache of recent results. */
import type { Clock } from './clock.ts';

/**
 * A map whose entries expire some time after they were put, with a limit on their number. At the
 * limit the oldest entry is dropped.
 */
export class Recent<K, V> {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #most: number;
  /** In the order in which they were put, oldest first. */
  readonly #known = new Map<K, { readonly value: V; readonly at: number }>();

  constructor(clock: Clock, freshMs: number, most: number) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#most = most;
  }

  /** The number of entries, expired ones included: those are removed when another one is put. */
  get size(): number {
    return this.#known.size;
  }

  /** The value; undefined if it was never put or has expired. */
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
