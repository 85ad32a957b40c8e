/** The parts of a live view page, which are lines and rows that can be opened. */
import type { GivenFilter } from '../../../../tools/capture/filter.ts';
import type {
  Listed,
  Party,
  SortKeys,
  ViewHead,
  ViewName,
  ViewQuery,
  Views,
} from '../../../../tools/watch/view.ts';
import { oneLine } from '../../../../server/base/visible.ts';
import { printNumber, printShare } from '../../live/figures.ts';
import { wrap } from '../../page.ts';
import type { StyleName } from '../../screen/cell-style.ts';
import { fit, type StyledLine } from '../../screen/styled-line.ts';
import { fitTable, type ScreenColumn } from '../../screen/table-layout.ts';

export type SortKey = SortKeys[ViewName];

export type AskModel = <V extends ViewName>(query: ViewQuery<V>) => Views[V];

export interface TraceTarget {
  readonly name: string;
  readonly client: Party;
  /** The `id` of the client's row. */
  readonly clientId: string;
  /** The names in its queries, in order, which reveal the search path. */
  readonly candidates: readonly string[];
  /** Address of the server, or empty if unknown. */
  readonly server: string;
}

export interface TopItem {
  /** Identifies the same item in every frame. */
  readonly id: string;
  /** All details, in lines no wider than `width` columns. */
  details(ask: AskModel, width: number): readonly StyledLine[];
  /** Filters for the lookups that the row counts, or null if there are none. */
  readonly lookups: readonly GivenFilter[] | null;
  /** The lookup to trace, or null if there is none. */
  target?(ask: AskModel): TraceTarget | null;
  readonly code?: string;
  /** The related row in another view. */
  readonly about?: { readonly view: ViewName; readonly id: string };
}

/** A line on a page, and the item it belongs to. */
export interface TopRow {
  readonly line: StyledLine;
  readonly item: TopItem | null;
}

/** A line that cannot be selected. */
export function asRow(line: StyledLine): TopRow {
  return { line, item: null };
}

export interface TopBody {
  /** Lines that stay at the top. */
  readonly header: readonly StyledLine[];
  readonly rows: readonly TopRow[];
  /** A description of the omitted parts, for the last line. */
  readonly leavesOut: string;
}

export interface PageFit {
  readonly width: number;
  /** Column widths so far, so that tables do not jump from frame to frame. */
  readonly widths: Map<number, number>;
  readonly sort: SortKey | null;
  readonly reversed: boolean;
}

function tableBody<Row>(
  columns: readonly ScreenColumn<Row>[],
  rows: readonly Row[],
  itemOf: (row: Row) => TopItem,
  { width, widths, sort, reversed }: PageFit,
): Pick<TopBody, 'header' | 'rows'> {
  const sorted = sort === null ? null : { key: sort, reversed };
  const table = fitTable(columns, rows, width, widths, sorted);
  return {
    header: [table.header],
    rows: rows.map((row) => ({ line: table.row(row), item: itemOf(row) })),
  };
}

/**
 * A page with nothing but a list.
 * @param usual the sort key if none is chosen
 */
export function listBody<Row>(
  columns: readonly ScreenColumn<Row>[],
  view: ViewHead<ViewName> & Listed<Row>,
  itemOf: (row: Row) => TopItem,
  fit: PageFit,
  usual: SortKey,
): TopBody {
  return {
    ...tableBody(columns, view.rows, itemOf, { ...fit, sort: fit.sort ?? usual }),
    leavesOut: leavesOut(view),
  };
}

/**
 * `200 of 41.0k lookups, 12 more did not fit into memory, kernel lost 3, from 30 % of all lookups`. Includes kernel
 * drops even if there were none, so that readers can trust the counts.
 */
function leavesOut(list: ViewHead<ViewName> & Listed<unknown>): string {
  const { view, shown, total, leftOut, lostByKernel, sampledShare, error } = list;
  const noun = total === 1 ? view.slice(0, -1) : view;
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

export function tableLines<Row>(
  columns: readonly ScreenColumn<Row>[],
  rows: readonly Row[],
  width: number,
): readonly StyledLine[] {
  const table = fitTable(columns, rows, width, new Map(), null);
  return [table.header, ...rows.map((row) => table.row(row))];
}

export function paragraph(
  text: string,
  width: number,
  { indent = '', style = 'plain' }: { readonly indent?: string; readonly style?: StyleName } = {},
): readonly StyledLine[] {
  return wrap(oneLine(text), indent, { columns: width }).map((line) => [[line, style]]);
}

const LABEL = 11;
/** On narrower screens, a field's text is printed below its label. */
const BESIDE = 45;

/** A label and its text, side by side. */
export function field(
  label: string,
  text: string,
  width: number,
  style: StyleName = 'plain',
): readonly StyledLine[] {
  if (text === '') return [];
  if (width < BESIDE)
    return [[[label, 'heading']], ...paragraph(text, width, { indent: '  ', style })];
  const lines = paragraph(text, width, { indent: ' '.repeat(LABEL), style });
  return lines.map((line, at) =>
    at > 0
      ? line
      : [
          [fit(label, LABEL), 'accent'],
          [line[0]![0].slice(LABEL), style],
        ],
  );
}

/** A label for several texts, each of which starts with a dash. */
export function listField(
  label: string,
  texts: readonly string[],
  width: number,
): readonly StyledLine[] {
  if (texts.length === 1) return field(label, texts[0]!, width);
  return texts.flatMap((text, at) => field(at === 0 ? label : '', `- ${text}`, width));
}

export function heading(text: string): readonly StyledLine[] {
  return [[], [[text, 'title']]];
}
