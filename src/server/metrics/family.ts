import type { CellMemory, Cells, CellSlot } from './cells.ts';
import type { Instrument } from './instruments.ts';
import { type FamilyShape, width } from './registration.ts';
import type { Family } from './registry.ts';

/** The registry's functions and limits for a family. */
export interface FamilyContext {
  readonly memory: CellMemory;
  /** Maximum number of label sets, not counting the one shared by those beyond the limit. */
  readonly limit: number;
  /** Maximum number of label sets with native buckets, which is 0 except for histograms. */
  readonly natives: number;
  /**
   * Called for a new label set.
   * @returns its number
   */
  added(values: readonly string[], slot: CellSlot, native: boolean): number;
  /** Called when a label set has been removed, with its final values. */
  removed(series: number, last: readonly number[]): void;
  /** Called for a histogram's label set that gets no native buckets because of the limit. */
  withoutNative(): void;
  /** Called when a label set has been refused and is counted under "other". */
  overflowed(): void;
}

/** Creates the instrument for a label set whose cells begin at `at`. */
export type MakeInstrument<M> = (cells: Cells, at: number, native: boolean) => M;

/** The value of every label in the label set that is shared by those beyond the limit. */
export const overflowValue = 'other';

/**
 * Maximum length of a label value, enough for an escaped domain name. A label set with a longer value is counted under
 * "other".
 */
const VALUE_LENGTH_MAX = 1024;

/**
 * One family in one thread. It is a tree of maps keyed by label value, with label sets as leaves. A lookup therefore
 * does not have to concatenate strings.
 */
export class SharedFamily<L extends readonly string[], M extends Instrument> implements Family<
  L,
  M
> {
  readonly #shape: FamilyShape;
  readonly #make: MakeInstrument<M>;
  readonly #context: FamilyContext;
  readonly #depth: number;
  readonly #root: Branch<M> = new Map();
  #only: Leaf<M> | null = null;
  #size = 0;
  #natives = 0;

  constructor(shape: FamilyShape, make: MakeInstrument<M>, context: FamilyContext) {
    this.#shape = shape;
    this.#make = make;
    this.#context = context;
    this.#depth = shape.labels.length;
  }

  /** Creates the only label set in a family without labels. */
  begin(): void {
    if (this.#depth === 0) this.#only ??= this.#plant([]);
  }

  with(...values: { [K in keyof L]: string }): M {
    const leaf = this.#find(values);
    return leaf === null ? this.#create(values).instrument : leaf.instrument;
  }

  remove(...values: { [K in keyof L]: string }): void {
    const leaf = this.#find(values);
    if (leaf === null) return;
    this.#prune(values);
    if (!isOverflow(values)) this.#size--;
    if (leaf.native) this.#natives--;
    const { slot } = leaf;
    const last = Array.from(slot.cells.subarray(slot.at, slot.at + slot.width));
    leaf.instrument.move(new Float64Array(new SharedArrayBuffer(slot.width * 8)), 0);
    this.#context.removed(leaf.series, last);
    this.#context.memory.free(slot);
  }

  #find(values: readonly string[]): Leaf<M> | null {
    const depth = this.#depth;
    if (values.length !== depth) this.#miscounted(values);
    if (depth === 0) return this.#only;
    let branch = this.#root;
    for (let level = 0; level < depth - 1; level++) {
      const next = branch.get(values[level]!);
      if (next === undefined) return null;
      branch = next as Branch<M>;
    }
    return (branch.get(values[depth - 1]!) as Leaf<M> | undefined) ?? null;
  }

  #create(values: readonly string[]): Leaf<M> {
    if (values.length === 0) return (this.#only = this.#plant(values));
    const fits = this.#size < this.#context.limit && values.every(isShort);
    if (isOverflow(values)) return this.#grow(values);
    if (fits) {
      this.#size++;
      return this.#grow(values);
    }
    this.#context.overflowed();
    const shared = values.map(() => overflowValue);
    return this.#find(shared) ?? this.#grow(shared);
  }

  #grow(values: readonly string[]): Leaf<M> {
    const leaf = this.#plant(values);
    let branch = this.#root;
    for (const value of values.slice(0, -1)) {
      let next = branch.get(value) as Branch<M> | undefined;
      if (next === undefined) branch.set(value, (next = new Map()));
      branch = next;
    }
    branch.set(values[values.length - 1]!, leaf);
    return leaf;
  }

  #plant(values: readonly string[]): Leaf<M> {
    const native = this.#natives < this.#context.natives;
    if (native) this.#natives++;
    else if (this.#context.natives > 0) this.#context.withoutNative();
    const slot = this.#context.memory.allocate(width(this.#shape, native));
    const series = this.#context.added([...values], slot, native);
    return { series, slot, native, instrument: this.#make(slot.cells, slot.at, native) };
  }

  #prune(values: readonly string[], branch: Branch<M> = this.#root, level = 0): void {
    if (values.length === 0) this.#only = null;
    const value = values[level];
    if (value === undefined) return;
    if (level < values.length - 1) {
      const next = branch.get(value) as Branch<M>;
      this.#prune(values, next, level + 1);
      if (next.size > 0) return;
    }
    branch.delete(value);
  }

  #miscounted(values: readonly string[]): never {
    const { name, labels } = this.#shape;
    throw new Error(
      `metric ${name}: has the labels [${labels.join(', ')}], was given ${values.length} values`,
    );
  }
}

interface Leaf<M> {
  readonly series: number;
  readonly slot: CellSlot;
  readonly native: boolean;
  readonly instrument: M;
}

// There are branches at every level except the last, which has leaves. They are distinguished by depth, not by type.
type Branch<M> = Map<string, Branch<M> | Leaf<M>>;

function isShort(value: string): boolean {
  return value.length <= VALUE_LENGTH_MAX;
}

function isOverflow(values: readonly string[]): boolean {
  return values.length > 0 && values.every((value) => value === overflowValue);
}
