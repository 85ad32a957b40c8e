/** Splits long work into slices, so that the thread can do other things in between. */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Work that can be interrupted wherever it yields. It should yield at least every millisecond or two. */
export type Slices<T> = Generator<void, T, undefined>;

/** Milliseconds of work before the thread does something else. */
const SLICE_MS = 8;

export function atOnce<T>(work: Slices<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs the work in slices. Rejects with any error that the work throws. */
export async function inSlices<T>(work: Slices<T>, clock: Clock): Promise<T> {
  let end = clock.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (clock.now() <= end) continue;
    await setImmediate();
    end = clock.now() + SLICE_MS;
  }
}
