/** The parts of a page of the live view: lines, some of which are rows that can be opened. */
import type { GivenFilter } from '../../../../tools/capture/filter.ts';
import type { Party, SortKeys, ViewName, ViewQuery, Views } from '../../../../tools/watch/view.ts';
import { oneLine } from '../../../../server/base/visible.ts';
import { wrap } from '../../page.ts';
import type { StyleName } from '../../screen/cell-style.ts';
import { fit, type StyledLine } from '../../screen/styled-line.ts';
import { fitTable, type ScreenColumn } from '../../screen/table-layout.ts';

/** A column that a page can be sorted by. */
export type SortKey = SortKeys[ViewName];

export type AskModel = <V extends ViewName>(query: ViewQuery<V>) => Views[V];

/** A lookup that can be traced. */
export interface TraceTarget {
  readonly name: string;
  readonly client: Party;
  /** The names of its queries in order, from which the search path shows. */
  readonly candidates: readonly string[];
  /** Address of the queried server; empty: unknown. */
  readonly server: string;
}

/** A row: its full text, and its actions. */
export interface TopItem {
  /** The same for the same thing in every frame. */
  readonly id: string;
  /** Everything that is known, in lines of at most `width` columns. */
  details(ask: AskModel, width: number): readonly StyledLine[];
  /** Filters that choose the lookups it counts; null: none can. */
  readonly lookups: readonly GivenFilter[] | null;
  /** The lookup to ask again; null: there is none. */
  target(ask: AskModel): TraceTarget | null;
  /** The code of a finding; null: it is something else. */
  readonly code: string | null;
  /** The row of another view that it is about; null: none. */
  readonly about: { readonly view: ViewName; readonly id: string } | null;
}

/** A line of a page, and the row that it stands for. */
export interface TopRow {
  readonly line: StyledLine;
  readonly item: TopItem | null;
}

/** A page, fitted to a width. */
export interface TopBody {
  /** Stays at the top. */
  readonly header: readonly StyledLine[];
  readonly rows: readonly TopRow[];
  /** The part that the page leaves out, for its last line. */
  readonly leavesOut: string;
}

/** The width and the order of pages. */
export interface PageFit {
  readonly width: number;
  /** The widths of columns so far, so that tables do not jump. */
  readonly widths: Map<number, number>;
  readonly sort: SortKey | null;
  readonly reversed: boolean;
}

/** A page that is one table. */
export function tableBody<Row>(
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

/** A table among other lines. */
export function tableLines<Row>(
  columns: readonly ScreenColumn<Row>[],
  rows: readonly Row[],
  width: number,
): readonly StyledLine[] {
  const table = fitTable(columns, rows, width, new Map(), null);
  return [table.header, ...rows.map((row) => table.row(row))];
}

/** A text that may be longer than a line. */
export function paragraph(
  text: string,
  width: number,
  { indent = '', style = 'plain' }: { readonly indent?: string; readonly style?: StyleName } = {},
): readonly StyledLine[] {
  return wrap(oneLine(text), indent, { columns: width }).map((line) => [[line, style]]);
}

/** Columns for the names of fields. */
const LABEL = 11;
/** Narrower than this, the text of a field is below its name. */
const BESIDE = 45;

/** A field: its name, and beside it the text. */
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

/** Several texts under one name, each with a dash. */
export function listField(
  label: string,
  texts: readonly string[],
  width: number,
): readonly StyledLine[] {
  if (texts.length === 1) return field(label, texts[0]!, width);
  return texts.flatMap((text, at) => {
    const lines = field(at === 0 ? label : '', `- ${text}`, width);
    return lines;
  });
}

/** A heading between lines. */
export function heading(text: string): readonly StyledLine[] {
  return [[], [[text, 'title']]];
}
