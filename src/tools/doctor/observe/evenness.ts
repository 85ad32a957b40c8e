/** Whether something happens as chance would have it, or by a count. */

/**
 * How unevenly something succeeds, compared with chance: the index of dispersion of a binomial
 * distribution, in standard deviations (Wilson and Hilferty, 1931). 0: as chance has it; below it,
 * more evenly: -3 comes once in 700 times by chance.
 * @param tries how many there were each time, about the same number
 */
export function unevenness(successes: readonly number[], tries: readonly number[]): number {
  const all = tries.reduce((sum, count) => sum + count, 0);
  const share = successes.reduce((sum, count) => sum + count, 0) / all;
  const freedom = successes.length - 1;
  if (freedom < 1 || share <= 0 || share >= 1) return 0;
  const squares = successes.reduce(
    (sum, count, at) =>
      sum + (count - share * tries[at]!) ** 2 / (share * (1 - share) * tries[at]!),
    0,
  );
  const width = 2 / (9 * freedom);
  return (Math.cbrt(squares / freedom) - (1 - width)) / Math.sqrt(width);
}
