/** Parts of the rows for clients, names and servers: columns and fields with counts, and the latest lookups. */
import type { GivenFilter } from '../../../../tools/capture/filter.ts';
import type { LiveCounts } from '../../../../tools/watch/view.ts';
import {
  badCount,
  latencySpan,
  printAge,
  printLatencies,
  printNumber,
  printPart,
  printRcodes,
  wasteSpan,
} from '../../live/figures.ts';
import type { StyledLine, StyledSpan } from '../../screen/styled-line.ts';
import { fixed, type ScreenColumn } from '../../screen/table-layout.ts';
import { lookupLines, targetOf } from './lookups-page.ts';
import { field, type TopItem } from './top-page.ts';

const LAST_LOOKUPS = 15;

/** A client, a name or a server. */
type CountedRow = LiveCounts & {
  readonly lastMs: number;
  readonly lookups?: number;
  readonly failedLookups?: number;
  readonly slowLookups?: number;
  readonly clients?: number | null;
};

type CountColumn =
  | 'queries'
  | 'lookups'
  | 'lost'
  | 'errors'
  | 'wasted'
  | 'p50'
  | 'p99'
  | 'clients'
  | 'seen';

/**
 * Columns with counts, in the order of their ranks' keys.
 * @param ranks see `ScreenColumn.rank`
 */
export function countColumns(
  atMs: number,
  ranks: Readonly<Partial<Record<CountColumn, number>>>,
): readonly ScreenColumn<CountedRow>[] {
  const number = (value: number | null): StyledSpan => [manyOf(value), 'plain'];
  type Parts = Omit<Parameters<typeof fixed<CountedRow>>[1], 'rank'>;
  const columns: Readonly<Record<CountColumn, Parts>> = {
    queries: { sort: 'queries', cell: ({ queries }) => number(queries) },
    lookups: { sort: 'lookups', cell: ({ lookups = 0 }) => number(lookups) },
    lost: { sort: 'lost', cell: ({ lost }) => badCount(lost) },
    errors: { sort: 'errors', cell: ({ failed }) => badCount(failed) },
    wasted: { sort: 'wasted', cell: wasteSpan },
    p50: { least: 7, cell: ({ latency }) => latencySpan(latency.p50) },
    p99: { least: 7, sort: 'latency', cell: ({ latency }) => latencySpan(latency.p99) },
    clients: { sort: 'clients', cell: ({ clients = null }) => number(clients) },
    seen: { least: 6, sort: 'seen', cell: ({ lastMs }) => [printAge(atMs - lastMs), 'dim'] },
  };
  const given = Object.entries(ranks) as [CountColumn, number][];
  return given.map(([name, rank]) => fixed(name.toUpperCase(), { ...columns[name], rank }));
}

/** @param count null if there are more than were counted separately */
export function manyOf(count: number | null): string {
  return count === null ? 'many' : printNumber(count);
}

/**
 * A row that opens its details and its latest lookups.
 * @param filters the filters for its lookups
 */
export function countedItem<Row extends { readonly id: string }>(
  view: 'clients' | 'names' | 'servers',
  row: Row,
  filters: readonly GivenFilter[],
  details: (row: Row, width: number) => readonly StyledLine[],
): TopItem {
  return {
    id: row.id,
    details(ask, width) {
      const [now = row] = ask({ view, id: row.id, most: 1 }).rows as readonly unknown[] as Row[];
      const last = ask({ view: 'lookups', filters, most: LAST_LOOKUPS }).rows;
      return [...details(now, width), ...lookupLines(last, width)];
    },
    lookups: filters,
    target(ask) {
      const [last] = ask({ view: 'lookups', filters, most: 1 }).rows;
      return last === undefined ? null : targetOf(last);
    },
  };
}

/** Leaves out the lookup fields if there were no lookups. */
export function countFields(row: Omit<CountedRow, 'lastMs'>, width: number): readonly StyledLine[] {
  const { queries, lost, failed, wasted, rcodes, latency, lookups } = row;
  const of = (count: number): string => (queries === 0 ? '' : ` (${printPart(count, queries)})`);
  const lookupTexts =
    lookups === undefined
      ? []
      : [
          printNumber(lookups),
          `${printNumber(row.failedLookups ?? 0)} without a result`,
          ...(row.slowLookups === undefined
            ? []
            : [`${printNumber(row.slowLookups)} took a second or more`]),
        ];
  return [
    ...field('Lookups', lookupTexts.join(', '), width),
    ...field('Queries', printNumber(queries), width),
    ...field('Lost', `${printNumber(lost)}${of(lost)}`, width, lost > 0 ? 'bad' : 'plain'),
    ...field('Errors', `${printNumber(failed)}${of(failed)}`, width, failed > 0 ? 'bad' : 'plain'),
    ...field(
      'Wasted',
      `${printNumber(wasted)}${of(wasted)}, for names that only a search path created`,
      width,
    ),
    ...field('Replies', printRcodes(rcodes), width),
    ...field('Latency', printLatencies(latency), width),
  ];
}
