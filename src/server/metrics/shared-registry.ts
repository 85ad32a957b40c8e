/** One thread's metrics, counted in memory that is shared with the main thread. */
import { type Clock, systemClock } from '../base/clock.ts';
import { clamp, limit } from '../base/limits.ts';
import { CellMemory } from './cells.ts';
import { type MakeInstrument, SharedFamily } from './family.ts';
import {
  CounterCell,
  DatedGaugeCell,
  GaugeCell,
  HistogramCell,
  type Instrument,
} from './instruments.ts';
import { NativeRange } from './native.ts';
import {
  checkShape,
  difference,
  type Merge,
  type MetricKind,
  NameClaims,
  type Registration,
  type FamilyShape,
} from './registration.ts';
import type { Counter, Family, Gauge, Registry } from './registry.ts';

/**
 * Maximum number of label sets per family in one thread, which take 288 KB for a time histogram. Any others share a
 * cell.
 */
const seriesLimit = limit({ default: 2000, min: 1, max: 100_000 });

/** Maximum number of label sets per histogram in one thread that also have native buckets, at 3.4 KB each. */
const nativeLimit = limit({ default: 200, min: 0, max: 100_000 });

export interface RegistryOptions {
  /** Provides the times at which `max` and `last` gauges are set. */
  readonly clock?: Clock;
  /** Maximum label sets per family; default `seriesLimit.default`. */
  readonly series?: number;
  /** Maximum number of label sets per histogram that have native buckets. The default is `nativeLimit.default`. */
  readonly natives?: number;
}

/** Counts the `with` calls that got the shared cell because a family was full. */
export const overflowName = 'ndots_metrics_overflow_total';
/** Help text for that counter. */
export const overflowHelp =
  'Number of times a label set was counted as "other", because the metric had reached its limit of label sets.';

const classicOnlyName = 'ndots_metrics_classic_only_total';
const classicOnlyHelp =
  'Number of histogram label sets without native buckets, because the metric had reached its limit.';

/**
 * A registry whose counts are in memory shared with the main thread. Each thread has its own. Additions and removals
 * (of blocks, families and label sets) are announced through `onRegister`. A worker posts the event, and the main
 * thread passes it to its `Collection`. There is only one collection, because it decides when freed cells may be
 * reused. Counting itself sends nothing. A family without labels exists, with value 0, as soon as it is registered. One
 * with labels exists from the first `with`. Registering a name again returns the same family. If the shape is
 * different, this throws an error, because it is a bug.
 */
export class SharedRegistry implements Registry {
  readonly #emit: (event: Registration) => void;
  readonly #wall: () => number;
  readonly #options: RegistryOptions;
  readonly #memory: CellMemory;
  readonly #claims = new NameClaims();
  // The map's key determines its value's type parameters, because a family is returned again only for the same shape.
  readonly #families = new Map<string, { readonly shape: FamilyShape; readonly family: unknown }>();
  #seriesNumbered = 0;

  constructor(onRegister: (event: Registration) => void, options: RegistryOptions = {}) {
    const clock = options.clock ?? systemClock;
    this.#emit = onRegister;
    this.#wall = () => clock.wall();
    this.#options = options;
    this.#memory = new CellMemory((block, memory) => onRegister({ event: 'block', block, memory }));
  }

  counter(name: string, help: string): Counter;
  counter<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
  ): Family<L, Counter>;
  counter(name: string, help: string, labels?: readonly string[]): unknown {
    const shape = shapeOf('counter', name, help, labels);
    const family = this.#family(shape, (cells, at) => new CounterCell(cells, at));
    return labels === undefined ? family.with() : family;
  }

  gauge(name: string, help: string): Gauge;
  gauge<const L extends readonly string[]>(
    name: string,
    help: string,
    labels: L,
    merge?: Merge,
  ): Family<L, Gauge>;
  gauge(name: string, help: string, labels?: readonly string[], merge: Merge = 'sum'): unknown {
    const shape = { ...shapeOf('gauge', name, help, labels), merge };
    const family = this.#family(shape, (cells, at): GaugeCell | DatedGaugeCell =>
      merge === 'sum' ? new GaugeCell(cells, at) : new DatedGaugeCell(cells, at, this.#wall),
    );
    return labels === undefined ? family.with() : family;
  }

  readonly histogram: Registry['histogram'] = (name, help, labels, bounds) => {
    const sought = Float64Array.from(bounds);
    const range = new NativeRange(bounds);
    return this.#family(
      { ...shapeOf('histogram', name, help, labels), bounds: [...bounds] },
      (cells, at, native) => new HistogramCell(cells, at, sought, native ? range : null),
    );
  };

  #family<L extends readonly string[], M extends Instrument>(
    shape: FamilyShape,
    make: MakeInstrument<M>,
  ): SharedFamily<L, M> {
    const known = this.#families.get(shape.name);
    if (known !== undefined) {
      const field = difference(known.shape, shape);
      if (field === null) return known.family as SharedFamily<L, M>;
      throw new Error(`metric ${shape.name}: registered before with a different ${field}`);
    }
    checkShape(shape);
    this.#claims.claim(shape);
    const number = this.#families.size;
    const family = new SharedFamily<L, M>(shape, make, {
      memory: this.#memory,
      limit: this.#limitOf(shape.name),
      natives:
        shape.kind === 'histogram'
          ? clamp(this.#options.natives ?? nativeLimit.default, nativeLimit)
          : 0,
      added: (values, slot, native) => {
        const series = this.#seriesNumbered++;
        const { at } = slot;
        const block = slot.block.index;
        this.#emit({ event: 'series', family: number, series, values, block, at, native });
        return series;
      },
      removed: (series, last) => this.#emit({ event: 'removal', series, last }),
      withoutNative: () =>
        this.counter(classicOnlyName, classicOnlyHelp, ['family']).with(shape.name).add(1),
      overflowed: () =>
        this.counter(overflowName, overflowHelp, ['family']).with(shape.name).add(1),
    });
    this.#families.set(shape.name, { shape, family });
    this.#emit({ event: 'family', family: number, shape });
    family.begin();
    return family;
  }

  #limitOf(name: string): number {
    // This family has at most one label set per family, and the number of families is fixed. If it had a limit and
    // became full, it would count its own overflow forever.
    if (name === overflowName || name === classicOnlyName) return seriesLimit.max;
    return clamp(this.#options.series ?? seriesLimit.default, seriesLimit);
  }
}

function shapeOf(
  kind: MetricKind,
  name: string,
  help: string,
  labels: readonly string[] = [],
): FamilyShape {
  return { name, help, kind, labels: [...labels], merge: 'sum', bounds: [] };
}
