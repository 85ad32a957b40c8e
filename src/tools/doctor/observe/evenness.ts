/** Tells chance from counting. */

/**
 * The index of dispersion of a binomial distribution, in standard deviations (Wilson and Hilferty,
 * 1931): 0 is chance; -3 is more even, and comes once in 700 times by chance. @param tries the
 * number each time, about the same
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
