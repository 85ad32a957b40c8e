/** Lays out tables for any width. The most important columns stay, and name columns share the remaining space. */
import { oneLine } from '../../../server/base/visible.ts';
import type { StyleName } from './cell-style.ts';
import { fit, type StyledSpan, type StyledLine } from './styled-line.ts';

export interface ScreenColumn<Row> {
  readonly title: string;
  /** The column's sort key, or empty if not sortable. */
  readonly sort: string;
  readonly align: 'left' | 'right';
  /**
   * Columns with a higher rank are dropped first when space is short. From `SPARE` on, columns are even dropped before
   * others are cut. Rank 0 always stays.
   */
  readonly rank: number;
  readonly least: number;
  /** True if the column may be cut down to `least`. Others always show their contents in full. */
  readonly shrinks: boolean;
  cell(row: Row): StyledSpan;
}

type FixedParts<Row> = Partial<Pick<ScreenColumn<Row>, 'sort' | 'least'>> &
  Pick<ScreenColumn<Row>, 'rank' | 'cell'>;

/** A column for numbers. */
export function fixed<Row>(title: string, parts: FixedParts<Row>): ScreenColumn<Row> {
  return { sort: '', align: 'right', least: title.length, shrinks: false, ...parts, title };
}

/** A column for short words. */
export function word<Row>(title: string, parts: FixedParts<Row>): ScreenColumn<Row> {
  return { ...fixed(title, parts), align: 'left' };
}

/** A column for names, which may be cut. */
export function shrinking<Row>(
  title: string,
  parts: Partial<Pick<ScreenColumn<Row>, 'sort'>> &
    Pick<ScreenColumn<Row>, 'rank' | 'cell' | 'least'>,
): ScreenColumn<Row> {
  return { sort: '', align: 'left', shrinks: true, ...parts, title };
}

/** Columns with this rank or higher get only the space that others do not need. */
const SPARE = 7;
/** Blanks between columns. */
const GAP = 1;

/** A table laid out for a width. */
export interface FittedTable<Row> {
  readonly header: StyledLine;
  row(row: Row): StyledLine;
  /** Number of columns that did not fit. */
  readonly hidden: number;
}

/**
 * Fits columns to a width.
 * @param rows the visible rows
 * @param widths maximum width of each column so far, so that columns do not jump; updated
 * @param sorted the sort key, whose column is marked with an arrow
 */
export function fitTable<Row>(
  columns: readonly ScreenColumn<Row>[],
  rows: readonly Row[],
  width: number,
  widths: Map<number, number>,
  sorted: { readonly key: string; readonly reversed: boolean } | null,
): FittedTable<Row> {
  const titleOf = (column: ScreenColumn<Row>): string =>
    sorted !== null && column.sort === sorted.key && column.sort !== ''
      ? `${column.title}${sorted.reversed ? '↑' : '↓'}`
      : column.title;
  const wanted = new Map<ScreenColumn<Row>, number>();
  columns.forEach((column, at) => {
    const isSilent = column.rank >= SPARE && rows.every((row) => column.cell(row)[0] === '');
    // A spare column that has always been empty takes no space.
    if (isSilent && !widths.has(at)) return;
    let most = Math.max(titleOf(column).length, column.least, widths.get(at) ?? 0);
    for (const row of rows) most = Math.max(most, oneLine(column.cell(row)[0]).length);
    widths.set(at, most);
    wanted.set(column, most);
  });
  // Columns with rank 0 always stay. Those that can be cut share whatever space is left.
  const always = columns.filter(({ rank }) => rank === 0);
  const solid = always.filter(({ shrinks }) => !shrinks);
  const room = solid.reduce((left, column) => left - wanted.get(column)! - GAP, width);
  const share = Math.floor(room / Math.max(1, always.length - solid.length)) - GAP + 1;
  const leastOf = (column: ScreenColumn<Row>): number => {
    if (!column.shrinks) return wanted.get(column)!;
    const least = Math.min(column.least, wanted.get(column)!);
    return column.rank === 0 ? Math.max(1, Math.min(least, share)) : least;
  };
  const kept = new Set<ScreenColumn<Row>>();
  // Total width with every column as narrow as possible, and with none of them cut.
  let least = -GAP;
  let whole = -GAP;
  for (const column of columns.toSorted((a, b) => a.rank - b.rank)) {
    if (!wanted.has(column)) continue;
    least += GAP + leastOf(column);
    whole += GAP + wanted.get(column)!;
    if (column.rank > 0 && (column.rank < SPARE ? least : whole) > width) break;
    kept.add(column);
  }
  const shown = columns.filter((column) => kept.has(column));
  const given = shareOut(
    shown.map((column) => ({ least: leastOf(column), most: wanted.get(column)! })),
    width - GAP * (shown.length - 1),
  );
  const lineOf = (cell: (column: ScreenColumn<Row>) => StyledSpan): StyledLine =>
    shown.flatMap((column, at): StyledSpan[] => {
      const [text, style] = cell(column);
      const isLast = at === shown.length - 1 && column.align === 'left';
      const fitted = fit(text, given[at]!, column.align);
      return [
        [isLast ? fitted.trimEnd() : fitted, style],
        ...(at < shown.length - 1 ? [[' '.repeat(GAP), 'plain'] as const] : []),
      ];
    });
  return {
    header: lineOf((column) => [titleOf(column), 'heading' satisfies StyleName]),
    row: (row) => lineOf((column) => column.cell(row)),
    hidden: columns.length - shown.length,
  };
}

/** Gives each column its minimum width, then divides the remaining space equally. */
function shareOut(
  wishes: readonly { readonly least: number; readonly most: number }[],
  room: number,
): readonly number[] {
  const given = wishes.map(({ least }) => least);
  let left = room - given.reduce((sum, each) => sum + each, 0);
  for (;;) {
    const hungry = wishes.flatMap(({ most }, at) => (given[at]! < most ? [at] : []));
    if (left <= 0 || hungry.length === 0) return given;
    const share = Math.max(1, Math.floor(left / hungry.length));
    for (const at of hungry) {
      const more = Math.min(share, wishes[at]!.most - given[at]!, left);
      given[at]! += more;
      left -= more;
    }
  }
}
