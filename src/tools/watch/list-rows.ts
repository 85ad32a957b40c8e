/** Sorts the rows of a list and selects one page. */
import type { Listed, ViewQuery } from './view.ts';

/** The default number of rows, and the maximum. */
const ROWS = 200;
const ROWS_MAX = 10_000;

/** Rows that a list leaves out, not counting other pages. */
export type LeftOutOfList = Pick<
  Listed<never>,
  'leftOut' | 'lostByKernel' | 'sampledShare' | 'error'
>;

/** Orders rows: the first one is shown first. */
export type RowOrder<T> = (one: T, other: T) => number;

/**
 * Returns a page of a list.
 * @param orders one for each sort key; the first is the default
 * @param toRow converts an entry into a row
 */
export function listRows<T, Row>(
  items: readonly T[],
  {
    sort,
    reversed = false,
    most = ROWS,
    skip = 0,
  }: Pick<ViewQuery, 'reversed' | 'most' | 'skip'> & {
    readonly sort?: string;
  },
  orders: Readonly<Record<string, RowOrder<T>>>,
  toRow: (item: T) => Row,
  leftOut: LeftOutOfList,
): Listed<Row> {
  const order = (sort === undefined ? undefined : orders[sort]) ?? Object.values(orders)[0]!;
  const sorted = items.toSorted(reversed ? (one, other) => order(other, one) : order);
  const rows = sorted.slice(skip, skip + rowsOf(most)).map(toRow);
  return { rows, shown: rows.length, total: items.length, ...leftOut };
}

export function rowsOf(most: number = ROWS): number {
  return Math.min(ROWS_MAX, Math.max(0, most));
}

/** Highest first. */
export function byMost<T>(of: (item: T) => number): RowOrder<T> {
  return (one, other) => of(other) - of(one) || 0;
}

export function byText<T>(of: (item: T) => string): RowOrder<T> {
  return (one, other) => (of(one) < of(other) ? -1 : of(one) > of(other) ? 1 : 0);
}

/** Uses the second order to break ties in the first. */
export function orElse<T>(first: RowOrder<T>, second: RowOrder<T>): RowOrder<T> {
  return (one, other) => first(one, other) || second(one, other);
}
