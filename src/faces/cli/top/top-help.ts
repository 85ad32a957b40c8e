/** The live view's help page, opened with `?`. */
import { liveFilterWords } from '../live-filters.ts';
import type { StyledLine } from '../screen/styled-line.ts';
import { field, heading, paragraph } from './pages/top-page.ts';

const keys: readonly (readonly [key: string, does: string])[] = [
  ['1 … 6', 'Now, Lookups, Clients, Names, Servers, Findings; Tab: next view'],
  ['↑ ↓ j k', 'move; PgUp, PgDn, Home, End (g, G) move further'],
  ['Enter', 'open the row: a lookup’s queries, or a finding’s cause, fix and proof'],
  ['Esc', 'close details, then the filter'],
  ['/', 'filter'],
  ['s, r', 'sort by the next column; reverse the order'],
  ['w', 'show the last 10 s, the last minute, or everything stored'],
  ['p, Space', 'pause; a replay stops, live traffic is still counted'],
  ['l', 'show the lookups counted in this row'],
  ['t', 'trace this row’s name as its client would look it up'],
  ['y', 'show and copy the command that prints the same'],
  ['x', 'the next cluster, with several --context'],
  ['+ -', 'replay faster or slower'],
  ['Ctrl-L', 'redraw the screen'],
  ['q', 'quit'],
];

export function helpLines(width: number): readonly StyledLine[] {
  return [
    [['Keys', 'title']],
    ...keys.flatMap(([key, does]) => field(key, does, width)),
    ...heading('Filters'),
    ...paragraph(
      'namespace=shop rcode=NXDOMAIN: both must match. Several values for one filter are alternatives. Put not before a filter to exclude matches: not verdict=answered. A single word matches part of a name: redis.',
      width,
    ),
    ...paragraph(`Words: ${liveFilterWords.join(', ')}`, width),
    ...heading('Columns'),
    ...field('LOST', 'queries that got no reply', width),
    ...field('ERRORS', 'replies that are errors: neither NOERROR nor NXDOMAIN', width),
    ...field('WASTED', 'the share of queries for names that only a search path created', width),
    ...field(
      'Reply p99',
      '99 of 100 replies were at least this fast, from the query to its reply wherever both were seen; on the left in the latest second with a reply, on the right in the whole window',
      width,
    ),
    ...field('P50 P99', 'half of the replies (or 99 of 100) were at least this fast', width),
  ];
}
