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

class CellInstrument implements Instrument {
  protected cells: Cells;
  protected at: number;

  constructor(cells: Cells, at: number) {
    this.cells = cells;
    this.at = at;
  }

  move(cells: Cells, at: number): void {
    this.cells = cells;
    this.at = at;
  }
}

/** One cell whose value only increases. Negative, zero and NaN amounts are ignored. */
export class CounterCell extends CellInstrument implements Counter {
  add(amount: number): void {
    if (amount > 0) this.cells[this.at]! += amount;
  }
}

export class GaugeCell extends CellInstrument implements Gauge {
  set(value: number): void {
    this.cells[this.at] = value;
  }

  add(amount: number): void {
    this.cells[this.at]! += amount;
  }
}

/** Two cells: the value, and the wall-clock time when it was set (0 means never), which is used to merge threads. */
export class DatedGaugeCell extends CellInstrument implements Gauge {
  readonly #wall: () => number;

  constructor(cells: Cells, at: number, wall: () => number) {
    super(cells, at);
    this.#wall = wall;
  }

  set(value: number): void {
    this.cells[this.at] = value;
    this.cells[this.at + 1] = this.#wall();
  }

  add(amount: number): void {
    this.set(this.cells[this.at]! + amount);
  }
}

/**
 * One cell per bucket (+Inf last), then the sum, and then the native buckets if they are counted. Buckets are searched
 * from the smallest bound, because most DNS replies fall into the first few. NaN is ignored, because it would make the
 * sum NaN forever.
 */
export class HistogramCell extends CellInstrument implements Histogram {
  readonly #bounds: Float64Array;
  readonly #native: NativeRange | null;

  constructor(cells: Cells, at: number, bounds: Float64Array, native: NativeRange | null) {
    super(cells, at);
    this.#bounds = bounds;
    this.#native = native;
  }

  observe(value: number): void {
    if (Number.isNaN(value)) return;
    const { cells, at } = this;
    const bounds = this.#bounds;
    const last = bounds.length;
    let bucket = 0;
    while (bucket < last && value > bounds[bucket]!) bucket++;
    cells[at + bucket]! += 1;
    cells[at + last + 1]! += value;
    if (this.#native !== null) cells[at + last + 2 + this.#native.cellOf(value)]! += 1;
  }
}
