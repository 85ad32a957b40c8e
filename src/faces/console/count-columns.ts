/** Columns shared by clients, names and servers, with query counts and results. */
import type { LiveCounts } from '../../tools/watch/view.ts';
import { printLatency, printNumber, printPart } from '../cli/live/figures.ts';
import type { LiveColumn } from './live-table.ts';

/** Queries, lost, errors, wasted, median and p99. */
export const countColumns: readonly LiveColumn<LiveCounts>[] = [
  { head: 'Queries', sort: 'queries', numeric: true, cell: ({ queries }) => printNumber(queries) },
  { head: 'Lost', sort: 'lost', numeric: true, cell: ({ lost }) => printNumber(lost) },
  { head: 'Errors', sort: 'errors', numeric: true, cell: ({ failed }) => printNumber(failed) },
  { head: 'Wasted', numeric: true, cell: ({ wasted, queries }) => printPart(wasted, queries) },
  { head: 'Median', numeric: true, cell: ({ latency }) => printLatency(latency.p50) },
  { head: 'p99', sort: 'latency', numeric: true, cell: ({ latency }) => printLatency(latency.p99) },
];

export const clientsColumn: LiveColumn<{ readonly clients: number | null }> = {
  head: 'Clients',
  sort: 'clients',
  numeric: true,
  cell: ({ clients }) => (clients === null ? 'many' : printNumber(clients)),
};

/** Rows with lost queries are errors, and rows with error replies are warnings. */
export function toneOf({ lost, failed }: LiveCounts): 'plain' | 'warning' | 'error' {
  return lost > 0 ? 'error' : failed > 0 ? 'warning' : 'plain';
}
