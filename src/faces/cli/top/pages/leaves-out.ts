/** Describes in one line what a list omits. */
import type { Listed } from '../../../../tools/watch/view.ts';
import { printNumber, printShare } from '../../live/figures.ts';

/**
 * `200 of 41.0k lookups, 12 without memory, kernel lost 3, 30 % in detail`. Includes kernel drops even if there were
 * none, so that readers can trust the counts.
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
