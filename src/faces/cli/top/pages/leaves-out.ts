/** The part that a list does not show, in one line that is always there. */
import type { Listed } from '../../../../tools/watch/view.ts';
import { printNumber, printShare } from '../../live/figures.ts';

/**
 * `200 of 41.0k lookups, 12 without memory, kernel lost 3, 30 % in detail`. Losses of
 * the kernel are named even where there are none: that is what makes counts believable.
 */
export function leavesOut(list: Listed<unknown>, one: string, many: string): string {
  const { shown, total, leftOut, lostByKernel, sampledShare, error } = list;
  const noun = total === 1 ? one : many;
  return [
    shown < total
      ? `${printNumber(shown)} of ${printNumber(total)} ${noun}`
      : `all ${printNumber(total)} ${noun}`,
    ...(leftOut > 0 ? [`${printNumber(leftOut)} more did not fit into memory`] : []),
    `kernel lost ${printNumber(lostByKernel)}`,
    ...(sampledShare < 1 ? [`from ${printShare(sampledShare)} of all lookups`] : []),
    ...(error > 0 ? [`counts up to ${printNumber(error)} too low`] : []),
  ].join(', ');
}
