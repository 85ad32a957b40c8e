/** Long work in short turns of the event loop. */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Nobody else on this thread waits for longer, milliseconds. */
const SLICE_MS = 8;
/** Numbers that are sorted in one go: a millisecond. */
const RUN = 2048;
/** Steps of a few nanoseconds each between two looks at the time. */
const STRIDE_MASK = 4095;

/** Work that takes long, and yields wherever it may be interrupted: about every tenth of a millisecond. */
export type Work<T> = Generator<void, T>;

/** Does the work, and lets all else that this thread has to do come in between. */
export async function inSlices<T>(work: Work<T>, clock: Clock): Promise<T> {
  let end = clock.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (clock.now() <= end) continue;
    await setImmediate();
    end = clock.now() + SLICE_MS;
  }
}

/** Does the work in one go. */
export function atOnce<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Sorts numbers in place, those that are equal as they stood. */
export function* sorting(
  items: Uint32Array,
  compare: (a: number, b: number) => number,
): Work<void> {
  const { length } = items;
  for (let at = 0; at < length; at += RUN) {
    items.subarray(at, at + RUN).sort(compare);
    yield;
  }
  if (length <= RUN) return;
  let [from, to]: [Uint32Array, Uint32Array] = [items, new Uint32Array(length)];
  for (let width = RUN; width < length; width *= 2) {
    for (let begin = 0; begin < length; begin += 2 * width) {
      const middle = Math.min(begin + width, length);
      const end = Math.min(middle + width, length);
      let a = begin;
      let b = middle;
      for (let at = begin; at < end; at++) {
        const isFirst = b === end || (a < middle && compare(from[a]!, from[b]!) <= 0);
        to[at] = from[isFirst ? a++ : b++]!;
        if ((at & STRIDE_MASK) === 0) yield;
      }
    }
    [from, to] = [to, from];
  }
  if (from !== items) items.set(from);
}
