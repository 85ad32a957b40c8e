/** The median of measured values. */

/** The upper of the two middle values if their number is even. The list must not be empty. */
export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
