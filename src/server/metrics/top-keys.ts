/** Exposes the most frequent keys as a limited number of gauge series. */
import { every, type Clock } from '../base/clock.ts';
import type { Family, Gauge, Registry } from './registry.ts';
import { SpaceSaving } from './space-saving.ts';

/** Default numbers of keys to count and to show. */
const COUNTED = 256;
const SHOWN = 10;
const SHOW_MS = 10_000;
/** Milliseconds after which a count weighs half. */
const HALF_LIFE_MS = 600_000;

/** The keys to count, and how they are presented. */
export interface TopKeysParts {
  readonly metrics: Registry;
  readonly clock: Clock;
  readonly name: string;
  readonly help: string;
  /** The label that holds the key. */
  readonly label: string;
  /** Maximum key size in bytes. */
  readonly width: number;
  readonly print: (key: Uint8Array) => string;
  /** Additional labels for a key, computed whenever the key is shown. */
  readonly about?: {
    readonly labels: readonly string[];
    /** Returns one value per label. */
    readonly of: (key: Uint8Array) => readonly string[];
  };
  /** Number of keys to count (256 by default) and to show (10 by default). */
  readonly counted?: number;
  readonly shown?: number;
}

/**
 * Counts keys in a sketch and shows the highest counts as a gauge, updated every ten seconds. Counts are halved every
 * ten minutes. The gauge shows the counts' lower bounds. A flood of keys that occur only once therefore shows up as
 * ones rather than as each slot's share. Counting allocates nothing.
 */
export class TopKeys {
  readonly #sketch: SpaceSaving;
  readonly #parts: TopKeysParts;
  readonly #gauge: Family<readonly string[], Gauge>;
  readonly #timer;
  /** Label values of each displayed series, keyed by their JSON. */
  #shown: ReadonlyMap<string, readonly string[]> = new Map();
  #changed = false;
  #halvings = 0;

  constructor(parts: TopKeysParts) {
    const { metrics, clock, name, help, label, about, width, counted } = parts;
    this.#parts = parts;
    this.#sketch = new SpaceSaving(counted ?? COUNTED, width);
    this.#gauge = metrics.gauge<readonly string[]>(name, help, [label, ...(about?.labels ?? [])]);
    const began = clock.now();
    this.#timer = every(clock, SHOW_MS, () => {
      const due = Math.floor((clock.now() - began) / HALF_LIFE_MS);
      for (; this.#halvings < due; this.#halvings++) {
        this.#sketch.halve();
        this.#changed = true;
      }
      if (this.#changed) this.#show();
    });
  }

  /** Counts the key `bytes[at, at + length)`. */
  add(bytes: Uint8Array, at: number, length: number): void {
    this.#sketch.add(bytes, at, length);
    this.#changed = true;
  }

  /** Counts a key whose hash the caller already has. In that case, all keys must be counted this way. */
  addHashed(hash: number, bytes: Uint8Array, at: number, length: number): void {
    this.#sketch.addHashed(hash, bytes, at, length);
    this.#changed = true;
  }

  /** The printed key with the highest count, or `''`. */
  get first(): string {
    const [slot] = this.#certain();
    return slot === undefined ? '' : this.#parts.print(this.#sketch.key(slot));
  }

  /** Removes the series and stops counting. */
  close(): void {
    this.#timer.cancel();
    for (const values of this.#shown.values()) this.#gauge.remove(...values);
    this.#shown = new Map();
  }

  /** Returns the slots to show, highest count first. */
  #certain(): readonly number[] {
    const sketch = this.#sketch;
    const certain = (slot: number): number => sketch.count(slot) - sketch.error(slot);
    return sketch
      .top(sketch.size)
      .toSorted((a, b) => certain(b) - certain(a))
      .slice(0, this.#parts.shown ?? SHOWN);
  }

  #show(): void {
    this.#changed = false;
    const sketch = this.#sketch;
    const { print, about } = this.#parts;
    const before = this.#shown;
    const shown = new Map<string, readonly string[]>();
    const counts = new Map<string, number>();
    for (const slot of this.#certain()) {
      const count = Math.round(sketch.count(slot) - sketch.error(slot));
      if (count === 0) continue;
      const key = sketch.key(slot);
      const values = [print(key), ...(about?.of(key) ?? [])];
      const text = JSON.stringify(values);
      shown.set(text, values);
      counts.set(text, count);
    }
    for (const [text, values] of before) if (!shown.has(text)) this.#gauge.remove(...values);
    for (const [text, values] of shown) this.#gauge.with(...values).set(counts.get(text)!);
    this.#shown = shown;
  }
}
