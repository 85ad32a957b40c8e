/** Sorts large arrays in slices, so that the thread's other work is not delayed. */
import type { Slices } from './slices.ts';

/** A comparison function, as for `sort`. */
export type NumberOrder = (a: number, b: number) => number;

/** Number of elements sorted without a pause. */
const SLICE = 1024;

/** Sorts in place, by first sorting parts and then merging them. Sorted input takes a single pass. */
export function* sortSlowly(all: Uint32Array, order: NumberOrder): Slices<void> {
  const { length } = all;
  for (let from = 0; from < length; from += SLICE) {
    const some = all.subarray(from, from + SLICE);
    if (!isSorted(some, order)) some.sort(order);
    if (length > SLICE) yield;
  }
  for (let size = SLICE; size < length; size *= 2) {
    for (let from = 0; from + size < length; from += 2 * size) {
      if (order(all[from + size - 1]!, all[from + size]!) > 0)
        yield* merge(all.subarray(from, from + 2 * size), size, order);
    }
  }
}

function isSorted(all: Uint32Array, order: NumberOrder): boolean {
  for (let i = 1; i < all.length; i++) if (order(all[i - 1]!, all[i]!) > 0) return false;
  return true;
}

/** Merges two sorted parts, the second of which starts at `middle`. */
function* merge(all: Uint32Array, middle: number, order: NumberOrder): Slices<void> {
  const left = all.slice(0, middle);
  for (let to = 0, i = 0, j = middle; i < middle; to++) {
    all[to] = j < all.length && order(left[i]!, all[j]!) > 0 ? all[j++]! : left[i++]!;
    if ((to & (SLICE - 1)) === SLICE - 1) yield;
  }
}
