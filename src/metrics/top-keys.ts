/** Names of those that something happens to most often, as series of a gauge: always few, whoever comes. */
import { every, type Clock } from '../base/clock.ts';
import type { Registry } from './registry.ts';
import { SpaceSaving } from './space-saving.ts';

/** Keys that are counted, those that are shown, and how often that is done. */
const COUNTED = 256;
const SHOWN = 10;
const SHOW_MS = 10_000;
/** After so long what happened counts half. */
const HALF_LIFE_MS = 600_000;

/** What is counted, and how it is told. */
export interface TopKeysParts {
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Of the gauge. */
  readonly name: string;
  readonly help: string;
  /** The one label, whose values are the keys. */
  readonly label: string;
  /** Bytes of a key at most. */
  readonly width: number;
  readonly print: (key: Uint8Array) => string;
}

/**
 * Counts keys in a sketch and shows the ten highest counts as a gauge with one label, anew every ten seconds; counts halve every ten
 * minutes. Counting allocates nothing.
 */
export class TopKeys {
  readonly #sketch: SpaceSaving;
  readonly #parts: TopKeysParts;
  readonly #gauge;
  readonly #timer;
  #shown: readonly string[] = [];
  #changed = false;
  #halvings = 0;

  constructor(parts: TopKeysParts) {
    const { metrics, clock, name, help, label, width } = parts;
    this.#parts = parts;
    this.#sketch = new SpaceSaving(COUNTED, width);
    this.#gauge = metrics.gauge(name, help, [label]);
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

  /** The key with the highest count, as it is printed; empty: there is none. */
  get first(): string {
    const [slot] = this.#sketch.top(1);
    return slot === undefined ? '' : this.#parts.print(this.#sketch.key(slot));
  }

  /** Takes the series away and counts no more. */
  close(): void {
    this.#timer.cancel();
    for (const key of this.#shown) this.#gauge.remove(key);
    this.#shown = [];
  }

  #show(): void {
    this.#changed = false;
    const sketch = this.#sketch;
    const counts = new Map<string, number>();
    for (const slot of sketch.top(SHOWN)) {
      const count = Math.round(sketch.count(slot));
      if (count > 0) counts.set(this.#parts.print(sketch.key(slot)), count);
    }
    for (const key of this.#shown) if (!counts.has(key)) this.#gauge.remove(key);
    for (const [key, count] of counts) this.#gauge.with(key).set(count);
    this.#shown = [...counts.keys()];
  }
}
