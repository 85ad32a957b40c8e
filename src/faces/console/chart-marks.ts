/** The places of events in a chart. */

/**
 * Returns where vertical lines are drawn, from 0 (left) to 1 (right). The line of values ends where the last step
 * begins, so events in that step are at the right end.
 */
export function markShares(
  marks: readonly number[],
  chart: { readonly fromMs: number; readonly stepMs: number; readonly steps: number },
): readonly number[] {
  const { fromMs, stepMs, steps } = chart;
  const spanMs = (steps - 1) * stepMs;
  return marks
    .map((ms) => ms - fromMs)
    .filter((ms) => ms >= 0 && ms < steps * stepMs)
    .map((ms) => (ms >= spanMs ? 1 : ms / spanMs));
}
