/** The rows of a list that are shown: sorted, and a page of them. */
import type { Listed, ViewQuery } from './view.ts';

/** Rows that are shown where nothing is said, and at most. */
const ROWS = 200;
const ROWS_MAX = 10_000;

/** The rows that a list leaves out, other than those of further pages. */
export type LeftOutOfList = Pick<
  Listed<never>,
  'leftOut' | 'lostByKernel' | 'sampledShare' | 'error'
>;

/** Orders rows: the first is the first to be shown. */
export type RowOrder<T> = (one: T, other: T) => number;

/**
 * A page of a list.
 * @param orders one for each word that it can be sorted by; the first is the default
 * @param toRow makes a row of an entry
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

/** Rows of a page. */
export function rowsOf(most: number = ROWS): number {
  return Math.min(ROWS_MAX, Math.max(0, most));
}

/** The highest first. */
export function byMost<T>(of: (item: T) => number): RowOrder<T> {
  return (one, other) => of(other) - of(one) || 0;
}

/** In the order of the alphabet. */
export function byText<T>(of: (item: T) => string): RowOrder<T> {
  return (one, other) => (of(one) < of(other) ? -1 : of(one) > of(other) ? 1 : 0);
}

/** The one, or where these are equal the other. */
export function orElse<T>(first: RowOrder<T>, second: RowOrder<T>): RowOrder<T> {
  return (one, other) => first(one, other) || second(one, other);
}
