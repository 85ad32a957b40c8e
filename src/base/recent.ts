/** What was made or found a moment ago, and need not be again. */
import type { Clock } from './clock.ts';

/** Values that count for a while after they were put, and no more of them than there is room for: the one goes that was put first. */
export class Recent<K, V> {
  readonly #clock: Clock;
  readonly #freshMs: number;
  readonly #most: number;
  /** The oldest first. */
  readonly #known = new Map<K, { readonly value: V; readonly at: number }>();

  constructor(clock: Clock, freshMs: number, most: number) {
    this.#clock = clock;
    this.#freshMs = freshMs;
    this.#most = most;
  }

  /** How many are held; those whose time is over go when another one comes. */
  get size(): number {
    return this.#known.size;
  }

  /** undefined: it was never put, or is not fresh any more. */
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
