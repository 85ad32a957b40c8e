/**
 * The busiest clients, names and servers in a window. Each step in the window has a Space-Saving sketch with a tally
 * per slot. Memory is therefore bounded for any number of keys, and the window slides by dropping its oldest step.
 */
import { SpaceSaving } from '../../server/metrics/space-saving.ts';
import { QueryTally } from './query-tally.ts';
import { TimeSlots } from './time-slots.ts';

export const WINDOW_STEPS = 5;
/** The maximum length of a key in bytes. Longer keys that start the same count as one. */
const KEY_BYTES = 255;
/** The estimated size in bytes of an entry, including its key and sketch slot but not its tally. */
const ENTRY_BYTES = 100;

/** A key in one step of the window. */
export interface KeyEntry<Extra> {
  readonly key: string;
  readonly tally: QueryTally;
  readonly extra: Extra;
}

/** A key summed over several steps. */
export interface KeySum<Extra> {
  readonly key: string;
  readonly tally: QueryTally;
  /** The extras of each step, oldest first. */
  readonly extras: readonly Extra[];
  /** The most occurrences the tally may have missed. */
  error: number;
}

/** Counts keys. A count is never too high, and we know by how much it may be too low. */
export class KeyCounts<Extra> {
  readonly #steps: TimeSlots<Step<Extra>>;
  readonly #bytes: Uint8Array = new Uint8Array(4 * KEY_BYTES);
  readonly #encoder = new TextEncoder();

  /**
   * @param capacity keys with a tally per step
   * @param width the maximum length of a key in bytes
   */
  constructor(windowMs: number, capacity: number, extra: () => Extra, width: number = KEY_BYTES) {
    this.#steps = new TimeSlots(
      windowMs / WINDOW_STEPS,
      WINDOW_STEPS + 1,
      () => new Step(capacity, width, extra),
    );
  }

  /**
   * Counts one occurrence of a key.
   * @returns its entry, or null if the time is before the window
   */
  count(key: string, ms: number): KeyEntry<Extra> | null {
    const step = this.#steps.at(ms);
    if (step === null) return null;
    const { written } = this.#encoder.encodeInto(key, this.#bytes);
    return step.count(key, this.#bytes, written);
  }

  /** Returns the entry for a key counted at this time, or null if it no longer has one. */
  find(key: string, ms: number): KeyEntry<Extra> | null {
    const step = this.#steps.at(ms);
    if (step === null) return null;
    const { written } = this.#encoder.encodeInto(key, this.#bytes);
    return step.find(this.#bytes, written);
  }

  advance(ms: number): void {
    this.#steps.advance(ms);
  }

  /** The actual start of the sums that begin at `fromMs`. */
  startOf(fromMs: number): number {
    return this.#steps.startOf(fromMs);
  }

  /** All keys since the step that includes `fromMs`. */
  sums(fromMs: number): ReadonlyMap<string, KeySum<Extra>> {
    const sums = new Map<string, KeySum<Extra> & { extras: Extra[] }>();
    let missing = 0;
    for (const step of this.#steps.between(fromMs)) {
      const least = step.least;
      missing += least;
      for (const { key, tally, extra, error } of step.entries()) {
        let sum = sums.get(key);
        if (sum === undefined) {
          sum = { key, tally: new QueryTally(), extras: [], error: 0 };
          sums.set(key, sum);
        }
        sum.tally.merge(tally);
        sum.extras.push(extra);
        // A missing key had at most this step's error.
        sum.error += error - least;
      }
    }
    if (missing > 0) for (const sum of sums.values()) sum.error += missing;
    return sums;
  }

  /** The number of times that a key has displaced another since the step that includes `fromMs`. */
  displaced(fromMs: number): number {
    let displaced = 0;
    for (const step of this.#steps.between(fromMs)) displaced += step.displaced;
    return displaced;
  }

  /** The estimated size in bytes of this many keys in all steps. */
  static limitBytes(capacity: number, width: number = KEY_BYTES): number {
    return (WINDOW_STEPS + 1) * capacity * (width + ENTRY_BYTES + QueryTally.limitBytes);
  }

  /** The estimated total size in bytes. */
  get bytes(): number {
    let bytes = 0;
    for (const step of this.#steps.between(-Infinity)) bytes += step.bytes;
    return bytes;
  }
}

class Step<Extra> {
  displaced = 0;
  readonly #sketch: SpaceSaving;
  readonly #entries: KeyEntry<Extra>[] = [];
  readonly #extra: () => Extra;
  readonly #width: number;

  constructor(capacity: number, width: number, extra: () => Extra) {
    this.#sketch = new SpaceSaving(capacity, width);
    this.#extra = extra;
    this.#width = width;
  }

  count(key: string, bytes: Uint8Array, length: number): KeyEntry<Extra> {
    const known = this.#sketch.size;
    const slot = this.#sketch.add(bytes, 0, length);
    if (!this.#sketch.replaced) return this.#entries[slot]!;
    if (this.#sketch.size === known) this.displaced++;
    return (this.#entries[slot] = { key, tally: new QueryTally(), extra: this.#extra() });
  }

  find(bytes: Uint8Array, length: number): KeyEntry<Extra> | null {
    const slot = this.#sketch.find(bytes, 0, length);
    return slot < 0 ? null : this.#entries[slot]!;
  }

  /** The maximum count for a key without a slot. */
  get least(): number {
    const { size, capacity } = this.#sketch;
    if (size < capacity) return 0;
    let least = Infinity;
    for (let slot = 0; slot < size; slot++) least = Math.min(least, this.#sketch.count(slot));
    return least;
  }

  *entries(): Iterable<KeyEntry<Extra> & { readonly error: number }> {
    for (const [slot, entry] of this.#entries.entries())
      yield { ...entry, error: this.#sketch.error(slot) };
  }

  get bytes(): number {
    let bytes = this.#sketch.capacity * this.#width;
    for (const { tally } of this.#entries) bytes += ENTRY_BYTES + tally.bytes;
    return bytes;
  }
}
