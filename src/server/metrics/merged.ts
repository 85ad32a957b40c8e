import type { Cells } from './cells.ts';
import { type Exposed, type ExposedSeries, printLabels } from './exposition.ts';
import { NativeRange } from './native.ts';
import { type FamilyShape, width } from './registration.ts';

/** One thread's cells that count towards a merged label set. */
export interface MergedCells {
  readonly cells: Cells;
  readonly at: number;
  /** True if they include native buckets. */
  readonly native: boolean;
}

export class MergedFamily {
  readonly shape: FamilyShape;
  readonly #native: NativeRange | null;
  readonly #series = new Map<string, MergedSeries>();
  readonly #labels: readonly string[];
  readonly #order: readonly number[];
  #sorted: readonly MergedSeries[] | null = null;

  constructor(shape: FamilyShape) {
    this.shape = shape;
    this.#native = shape.kind === 'histogram' ? new NativeRange(shape.bounds) : null;
    // Labels are printed in order of their names, as Go's clients do. `order` maps them to positions in the values.
    this.#order = shape.labels
      .map((_, index) => index)
      .toSorted((a, b) => (shape.labels[a]! < shape.labels[b]! ? -1 : 1));
    this.#labels = this.#order.map((index) => shape.labels[index]!);
  }

  get size(): number {
    return this.#series.size;
  }

  find(values: readonly string[]): MergedSeries | null {
    return this.#series.get(keyOf(values)) ?? null;
  }

  add(values: readonly string[]): MergedSeries {
    const ordered = this.#order.map((index) => values[index]!);
    const series = new MergedSeries(this.shape, values, this.#labels, ordered);
    this.#series.set(series.key, series);
    this.#sorted = null;
    return series;
  }

  drop(series: MergedSeries): void {
    this.#series.delete(series.key);
    this.#sorted = null;
  }

  /** Makes room by dropping the oldest label set that only ended threads used. Returns false if there is none. */
  dropAbandoned(): boolean {
    for (const series of this.#series.values()) {
      if (series.parts > 0) continue;
      this.drop(series);
      return true;
    }
    return false;
  }

  /** Returns the current values, with the label sets in order. The next call overwrites them. */
  expose(): Exposed {
    const { name, help, kind, bounds } = this.shape;
    this.#sorted ??= [...this.#series.values()].toSorted(inOrder);
    for (const series of this.#sorted) series.read();
    return { name, help, kind, bounds, native: this.#native, series: this.#sorted };
  }
}

/** One label set across all threads: the cells of running threads, and the counts of ended threads. */
export class MergedSeries implements ExposedSeries {
  readonly key: string;
  readonly names: readonly string[];
  readonly ordered: readonly string[];
  readonly labels: string;
  readonly values: Float64Array;
  readonly #shape: FamilyShape;
  readonly #parts = new Set<MergedCells>();
  #retained: Float64Array | null = null;
  /** True if everything counted here was also counted in native buckets. */
  native = true;

  constructor(
    shape: FamilyShape,
    values: readonly string[],
    names: readonly string[],
    ordered: readonly string[],
  ) {
    this.key = keyOf(values);
    this.names = names;
    this.ordered = ordered;
    this.labels = printLabels(names, ordered);
    this.#shape = shape;
    this.values = new Float64Array(shape.kind === 'gauge' ? 1 : width(shape, true));
  }

  get parts(): number {
    return this.#parts.size;
  }

  get empty(): boolean {
    return this.#parts.size === 0 && this.#retained === null;
  }

  join(part: MergedCells): void {
    this.#parts.add(part);
    this.native &&= part.native;
  }

  /** Removes a part and its counts. */
  leave(part: MergedCells): void {
    this.#parts.delete(part);
  }

  /** Removes a part but retains its last counts. A gauge's value is removed with its thread. */
  retain(part: MergedCells, last: ArrayLike<number> = this.#cellsOf(part)): void {
    this.#parts.delete(part);
    if (this.#shape.kind === 'gauge') return;
    const retained = (this.#retained ??= new Float64Array(this.values.length));
    for (let index = 0; index < last.length; index++) retained[index]! += last[index]!;
  }

  read(): void {
    if (this.#shape.kind !== 'gauge') this.#readCounts();
    else if (this.#shape.merge === 'sum') this.#readSum();
    else this.#readDated();
  }

  #readCounts(): void {
    const { values } = this;
    const end = this.native ? values.length : width(this.#shape, false);
    for (let index = 0; index < end; index++) {
      let total = this.#retained?.[index] ?? 0;
      for (const part of this.#parts) total += part.cells[part.at + index]!;
      values[index] = risen(values[index]!, total);
    }
  }

  #readSum(): void {
    let total = 0;
    for (const { cells, at } of this.#parts) total += cells[at]!;
    this.values[0] = total;
  }

  #readDated(): void {
    const latest = this.#shape.merge === 'last';
    let best = 0;
    let bestDate = 0;
    for (const { cells, at } of this.#parts) {
      const value = cells[at]!;
      const date = cells[at + 1]!;
      if (date === 0) continue;
      if (bestDate !== 0 && (latest ? date < bestDate : value <= best)) continue;
      best = value;
      bestDate = date;
    }
    this.values[0] = best;
  }

  #cellsOf({ cells, at, native }: MergedCells): Float64Array {
    return cells.subarray(at, at + width(this.#shape, native));
  }
}

/**
 * Returns the new total, unless it is only a rounding error below the old one. When a thread ends, the order of
 * summation changes, and so does the rounding of fractions. Prometheus treats even the smallest decrease of a counter
 * as a process restart. It would then count everything since the start a second time.
 */
function risen(before: number, now: number): number {
  return now < before && before - now <= before * 1e-12 ? before : now;
}

function inOrder(one: MergedSeries, other: MergedSeries): number {
  for (let index = 0; index < one.ordered.length; index++) {
    const a = one.ordered[index]!;
    const b = other.ordered[index]!;
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

function keyOf(values: readonly string[]): string {
  return JSON.stringify(values);
}
