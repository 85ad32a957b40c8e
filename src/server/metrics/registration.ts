import { limit } from '../base/limits.ts';
import { NativeRange } from './native.ts';

/**
 * The events used by a thread to announce its metrics to the main thread. They are small and can be structured-cloned.
 * There is one for each addition or removal, and never one per count. The counts are read from the shared blocks that
 * the events refer to.
 */
export type Registration = BlockEvent | FamilyEvent | SeriesEvent | RemovalEvent;

/** A new block of cells, which later events refer to by number. */
export interface BlockEvent {
  readonly event: 'block';
  readonly block: number;
  readonly memory: SharedArrayBuffer;
}

/** A family was registered. `family` is its number within the sending thread. */
export interface FamilyEvent {
  readonly event: 'family';
  readonly family: number;
  readonly shape: FamilyShape;
}

/**
 * A label set was used for the first time. Its values start at cell `at` of `block`, and take up `width(shape, native)`
 * cells.
 */
export interface SeriesEvent {
  readonly event: 'series';
  readonly family: number;
  readonly series: number;
  /** Label values in the same order as the shape's labels. */
  readonly values: readonly string[];
  readonly block: number;
  readonly at: number;
  /**
   * True if the cells for a histogram's native buckets follow. Only a limited number of a family's label sets have
   * them.
   */
  readonly native: boolean;
}

/** A label set was removed. `last` contains its final values, because its cells may no longer be read. */
export interface RemovalEvent {
  readonly event: 'removal';
  readonly series: number;
  readonly last: readonly number[];
}

/** A family's type, in Prometheus's terms. */
export type MetricKind = 'counter' | 'gauge' | 'histogram';

/**
 * The rule for combining one gauge's values from several threads: their sum, the largest, or the most recently set
 * value (by the wall clock, in milliseconds).
 */
export type Merge = 'sum' | 'max' | 'last';

/** The complete definition of a family. Two registrations with the same name must agree in every field. */
export interface FamilyShape {
  readonly name: string;
  readonly help: string;
  readonly kind: MetricKind;
  readonly labels: readonly string[];
  /** Gauges only; `sum` for other kinds. */
  readonly merge: Merge;
  /** Ascending upper bounds without the last one (+Inf), for histograms. Empty for other kinds. */
  readonly bounds: readonly number[];
}

/** Maximum number of buckets per histogram. Each costs one cell per label set and thread, and one line per scrape. */
const bucketLimit = limit({ default: 16, min: 1, max: 256 });

/**
 * Returns the number of cells per label set. A counter has the count. A gauge has the value and, for `max` and `last`,
 * the time it was set. A histogram has the count of each bucket (not cumulative, +Inf last), the sum of all
 * observations, and then the native buckets.
 */
export function width(shape: FamilyShape, native: boolean): number {
  if (shape.kind === 'histogram')
    return shape.bounds.length + 2 + (native ? new NativeRange(shape.bounds).cells : 0);
  return shape.merge === 'sum' ? 1 : 2;
}

/** Throws unless Prometheus accepts the names, labels and bounds. */
export function checkShape(shape: FamilyShape): void {
  const { name, kind, labels, bounds } = shape;
  const fail = (what: string): never => {
    throw new Error(`metric ${JSON.stringify(name)}: ${what}`);
  };
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) fail('not a metric name');
  for (const label of labels) {
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label.startsWith('__')) {
      fail(`${JSON.stringify(label)} is not a label name`);
    }
    if (kind === 'histogram' && label === 'le') fail('the label le is reserved for the buckets');
  }
  if (new Set(labels).size !== labels.length) fail('a label is named twice');
  if (kind !== 'histogram') return;
  if (bounds.length < bucketLimit.min || bounds.length > bucketLimit.max) {
    fail(`${bounds.length} buckets, but ${bucketLimit.min} to ${bucketLimit.max} are allowed`);
  }
  if (!bounds.every(Number.isFinite)) fail('bucket bounds must be finite; +Inf is implied');
  if (bounds.some((bound, index) => index > 0 && bound <= bounds[index - 1]!)) {
    fail('bucket bounds have to ascend');
  }
}

/** Returns the first field in which two shapes differ, or null. */
export function difference(one: FamilyShape, other: FamilyShape): keyof FamilyShape | null {
  const fields = ['kind', 'help', 'merge', 'labels', 'bounds', 'name'] as const;
  return fields.find((field) => String(one[field]) !== String(other[field])) ?? null;
}

/** Records which exposed names belong to which family, so that no two families print the same name. */
export class NameClaims {
  readonly #owners = new Map<string, string>();

  /** Throws if a name that `shape` would print belongs to another family. */
  claim(shape: FamilyShape): void {
    const names = printedNames(shape);
    for (const name of names) {
      const owner = this.#owners.get(name);
      if (owner !== undefined && owner !== shape.name) {
        throw new Error(`metric ${shape.name}: prints as ${name}, which belongs to ${owner}`);
      }
    }
    for (const name of names) this.#owners.set(name, shape.name);
  }

  owner(name: string): string | null {
    return this.#owners.get(name) ?? null;
  }
}

function printedNames({ name, kind }: FamilyShape): readonly string[] {
  if (kind === 'histogram') return [name, `${name}_bucket`, `${name}_sum`, `${name}_count`];
  return kind === 'counter' ? [name, openMetricsName(name)] : [name];
}

/** Returns a counter's family name in OpenMetrics, which omits the `_total` that its samples end in. */
export function openMetricsName(counter: string): string {
  return counter.endsWith('_total') ? counter.slice(0, -'_total'.length) : counter;
}
