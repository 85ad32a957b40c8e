/** A bound that a person may set: every queue, table and buffer has one, with the reason beside it. */
export interface Limit {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}

/** A limit, for a constant: gives it its type. */
export function limit(parts: Limit): Limit {
  return parts;
}

/** `value` moved into the limit's range. */
export function clamp(value: number, { min, max }: Limit): number {
  return Math.min(max, Math.max(min, value));
}
