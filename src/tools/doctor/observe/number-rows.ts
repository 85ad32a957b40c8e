/**
 * Numbers about very many things of one kind. As an object for each they would take several times
 * as much memory, and be looked at by the collector again and again.
 */

/** Rows in one piece of memory: 2 to this power. */
const SHIFT = 10;
const MASK = (1 << SHIFT) - 1;

/** A table that grows by rows of counts (unsigned, 32 bits) and times (64 bits). All begin as 0. */
export class NumberRows {
  size: number = 0;
  readonly #counts: Uint32Array[] = [];
  readonly #times: Float64Array[] = [];
  readonly #countsOfRow: number;
  readonly #timesOfRow: number;

  constructor(countsOfRow: number, timesOfRow: number) {
    this.#countsOfRow = countsOfRow;
    this.#timesOfRow = timesOfRow;
  }

  /** @returns the number of a new row */
  add(): number {
    const row = this.size++;
    if ((row & MASK) === 0) {
      this.#counts.push(new Uint32Array(this.#countsOfRow << SHIFT));
      this.#times.push(new Float64Array(this.#timesOfRow << SHIFT));
    }
    return row;
  }

  count(row: number, at: number): number {
    return this.#counts[row >>> SHIFT]![(row & MASK) * this.#countsOfRow + at]!;
  }

  setCount(row: number, at: number, value: number): void {
    this.#counts[row >>> SHIFT]![(row & MASK) * this.#countsOfRow + at] = value;
  }

  increment(row: number, at: number): void {
    this.#counts[row >>> SHIFT]![(row & MASK) * this.#countsOfRow + at]!++;
  }

  time(row: number, at: number): number {
    return this.#times[row >>> SHIFT]![(row & MASK) * this.#timesOfRow + at]!;
  }

  setTime(row: number, at: number, value: number): void {
    this.#times[row >>> SHIFT]![(row & MASK) * this.#timesOfRow + at] = value;
  }
}
