/** A time window split into equal steps, each with separate counts. */

interface Slot<S> {
  /** The step's number since 1970. */
  readonly step: number;
  readonly state: S;
}

/** The latest steps. Earlier ones are dropped as time passes. */
export class TimeSlots<S> {
  readonly stepMs: number;
  readonly #slots: (Slot<S> | undefined)[];
  readonly #make: () => S;
  /** The newest step, or -1 if there is none. */
  #newest = -1;

  /** @param steps the number of steps to store, including the newest */
  constructor(stepMs: number, steps: number, make: () => S) {
    this.stepMs = stepMs;
    this.#slots = Array.from({ length: steps });
    this.#make = make;
  }

  /** The state of the step that includes a time, or null if it has been dropped. */
  at(ms: number): S | null {
    const step = Math.floor(ms / this.stepMs);
    if (step > this.#newest) this.#newest = step;
    else if (step <= this.#newest - this.#slots.length) return null;
    const place = step % this.#slots.length;
    const known = this.#slots[place];
    if (known?.step === step) return known.state;
    const state = this.#make();
    this.#slots[place] = { step, state };
    return state;
  }

  /** Drops steps that are too old at this time, even without new events. */
  advance(ms: number): void {
    const step = Math.floor(ms / this.stepMs);
    if (step > this.#newest) this.#newest = step;
    for (const [place, slot] of this.#slots.entries())
      if (slot !== undefined && slot.step <= this.#newest - this.#slots.length)
        this.#slots[place] = undefined;
  }

  /** The start of the step that includes a time, in milliseconds since 1970. */
  startOf(ms: number): number {
    return Math.floor(ms / this.stepMs) * this.stepMs;
  }

  /** The states of the steps from `fromMs` to `toMs`, in no particular order. */
  *between(fromMs: number, toMs: number = Infinity): Iterable<S> {
    for (const [, state] of this.steps(fromMs, toMs)) yield state;
  }

  /** The same, with each step's start in milliseconds since 1970. */
  *steps(fromMs: number, toMs: number = Infinity): Iterable<readonly [startMs: number, state: S]> {
    const from = Math.max(Math.floor(fromMs / this.stepMs), this.#newest - this.#slots.length + 1);
    const to = Math.floor(toMs / this.stepMs);
    for (const slot of this.#slots)
      if (slot !== undefined && slot.step >= from && slot.step <= to)
        yield [slot.step * this.stepMs, slot.state];
  }
}
