/** Counts by the second. */
import { BoundedMap } from './bounded-map.ts';

/** Seconds since 1970, in order, and the counts in each. */
export type History<T> = readonly (readonly [second: number, T])[];

export class BySecond<T> {
  readonly #seconds: BoundedMap<number, T>;
  readonly #make: () => T;
  #history: History<T> = [];

  /** @param most seconds that are counted separately */
  constructor(make: () => T, most: number) {
    this.#make = make;
    this.#seconds = new BoundedMap(most);
  }

  /** Null once there are too many. @param ms milliseconds since 1970 */
  at(ms: number): T | null {
    return this.#seconds.at(Math.floor(ms / 1000), this.#make);
  }

  get history(): History<T> {
    if (this.#history.length < this.#seconds.size)
      this.#history = this.#seconds.entries.toSorted(([one], [other]) => one - other);
    return this.#history;
  }
}
