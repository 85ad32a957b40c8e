/** The Names page: names that were looked up, as applications spelled them. */
import { nameFilter } from '../../../../tools/watch/name-filter.ts';
import type { NameRow, NamesView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, type ScreenColumn } from '../../screen/table-layout.ts';
import { countFields } from './count-fields.ts';
import { badCount, latencySpan, printAge, printNumber, wasteSpan } from '../../live/figures.ts';
import { leavesOut } from './leaves-out.ts';
import {
  field,
  paragraph,
  tableBody,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';
import { lookupLines, outcomeSpan, targetOf } from './lookups-page.ts';

/** Number of lookups in a row's details. */
const LAST_LOOKUPS = 15;

function columns(atMs: number): readonly ScreenColumn<NameRow>[] {
  return [
    shrinking('NAME', { rank: 0, sort: 'name', least: 28, cell: ({ name }) => [name, 'strong'] }),
    fixed('LAST', {
      rank: 3,
      align: 'left',
      least: 9,
      cell: ({ outcome }) => outcomeSpan(outcome, ''),
    }),
    fixed('LOOKUPS', {
      rank: 1,
      sort: 'lookups',
      cell: ({ lookups }) => [printNumber(lookups), 'plain'],
    }),
    fixed('QUERIES', {
      rank: 4,
      sort: 'queries',
      cell: ({ queries }) => [printNumber(queries), 'plain'],
    }),
    fixed('LOST', { rank: 1, sort: 'lost', cell: ({ lost }) => badCount(lost) }),
    fixed('FAILED', { rank: 2, sort: 'failed', cell: ({ failed }) => badCount(failed) }),
    fixed('WASTED', { rank: 2, sort: 'wasted', cell: wasteSpan }),
    fixed('P50', { rank: 7, least: 7, cell: ({ latency }) => latencySpan(latency.p50) }),
    fixed('P99', {
      rank: 5,
      least: 7,
      sort: 'latency',
      cell: ({ latency }) => latencySpan(latency.p99),
    }),
    fixed('CLIENTS', {
      rank: 6,
      sort: 'clients',
      cell: ({ clients }) => [clients === null ? 'many' : printNumber(clients), 'plain'],
    }),
    fixed('TYPES', {
      rank: 8,
      align: 'left',
      least: 6,
      cell: ({ types }) => [types.slice(0, 3).join(' '), 'dim'],
    }),
    fixed('SEEN', {
      rank: 9,
      least: 6,
      sort: 'seen',
      cell: ({ lastMs }) => [printAge(atMs - lastMs), 'dim'],
    }),
  ];
}

export function namesBody(view: NamesView, fit: PageFit): TopBody {
  return {
    ...tableBody(columns(view.atMs), view.rows, nameItem, { ...fit, sort: fit.sort ?? 'lookups' }),
    leavesOut: leavesOut(view, 'name', 'names'),
  };
}

function nameItem(row: NameRow): TopItem {
  const filters = [nameFilter(row.name)];
  return {
    id: row.id,
    details(ask, width) {
      const [now = row] = ask({ view: 'names', id: row.id, most: 1 }).rows;
      const last = ask({ view: 'lookups', filters, most: LAST_LOOKUPS }).rows;
      return [...nameDetails(now, width), ...lookupLines(last, width)];
    },
    lookups: filters,
    target(ask) {
      const [last] = ask({ view: 'lookups', filters, most: 1 }).rows;
      return last === undefined ? null : targetOf(last);
    },
    code: null,
    about: null,
  };
}

function nameDetails(row: NameRow, width: number): readonly StyledLine[] {
  const { name, clients, types, outcome, error } = row;
  const [ending, style] = outcomeSpan(outcome, '');
  return [
    ...paragraph(name, width, { style: 'title' }),
    ...field('Last', ending, width, style),
    ...field('Clients', clients === null ? 'many' : printNumber(clients), width),
    ...field('Types', types.join(', '), width),
    ...(error > 0
      ? field('Error', `up to ${printNumber(error)} lookups of this name may not be counted`, width)
      : []),
    ...countFields(row, width),
  ];
}
