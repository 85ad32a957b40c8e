import type { Cells } from './cells.ts';
import type { NativeRange } from './native.ts';
import type { Counter, Gauge, Histogram } from './registry.ts';

/**
 * The instruments that code uses to count. Each is a reference to memory and an index, so counting is an array write
 * and allocates nothing. A metric must never cost a query its answer, so invalid amounts are ignored rather than
 * throwing an error.
 */
export interface Instrument {
  /** Moves the instrument, so that it counts in these cells from now on. */
  move(cells: Cells, at: number): void;
}

/** One cell whose value only increases. Negative, zero and NaN amounts are ignored. */
export class CounterCell implements Counter, Instrument {
  #cells: Cells;
  #at: number;

  constructor(cells: Cells, at: number) {
    this.#cells = cells;
    this.#at = at;
  }

  add(amount: number): void {
    if (amount > 0) this.#cells[this.#at]! += amount;
  }

  move(cells: Cells, at: number): void {
    this.#cells = cells;
    this.#at = at;
  }
}

/** One cell, which holds the value. */
export class GaugeCell implements Gauge, Instrument {
  #cells: Cells;
  #at: number;

  constructor(cells: Cells, at: number) {
    this.#cells = cells;
    this.#at = at;
  }

  set(value: number): void {
    this.#cells[this.#at] = value;
  }

  add(amount: number): void {
    this.#cells[this.#at]! += amount;
  }

  move(cells: Cells, at: number): void {
    this.#cells = cells;
    this.#at = at;
  }
}

/** Two cells: the value, and the wall-clock time when it was set (0 means never), which is used to merge threads. */
export class DatedGaugeCell implements Gauge, Instrument {
  readonly #wall: () => number;
  #cells: Cells;
  #at: number;

  constructor(cells: Cells, at: number, wall: () => number) {
    this.#cells = cells;
    this.#at = at;
    this.#wall = wall;
  }

  set(value: number): void {
    this.#cells[this.#at] = value;
    this.#cells[this.#at + 1] = this.#wall();
  }

  add(amount: number): void {
    this.set(this.#cells[this.#at]! + amount);
  }

  move(cells: Cells, at: number): void {
    this.#cells = cells;
    this.#at = at;
  }
}

/**
 * One cell per bucket (+Inf last), then the sum, and then the native buckets if they are counted. Buckets are searched
 * from the smallest bound, because most DNS replies fall into the first few. NaN is ignored, because it would make the
 * sum NaN forever.
 */
export class HistogramCell implements Histogram, Instrument {
  readonly #bounds: Float64Array;
  readonly #native: NativeRange | null;
  #cells: Cells;
  #at: number;

  constructor(cells: Cells, at: number, bounds: Float64Array, native: NativeRange | null) {
    this.#cells = cells;
    this.#at = at;
    this.#bounds = bounds;
    this.#native = native;
  }

  observe(value: number): void {
    if (Number.isNaN(value)) return;
    const bounds = this.#bounds;
    const cells = this.#cells;
    const at = this.#at;
    const last = bounds.length;
    let bucket = 0;
    while (bucket < last && value > bounds[bucket]!) bucket++;
    cells[at + bucket]! += 1;
    cells[at + last + 1]! += value;
    if (this.#native !== null) cells[at + last + 2 + this.#native.cellOf(value)]! += 1;
  }

  move(cells: Cells, at: number): void {
    this.#cells = cells;
    this.#at = at;
  }
}
