/** The Names page: names that were looked up, as applications spelled them. */
import { nameFilter } from '../../../../tools/watch/name-filter.ts';
import type { NameRow, NamesView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { shrinking, word, type ScreenColumn } from '../../screen/table-layout.ts';
import { printNumber } from '../../live/figures.ts';
import { countColumns, countedItem, countFields, manyOf } from './counted-row.ts';
import {
  field,
  listBody,
  paragraph,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';
import { outcomeSpan } from './lookups-page.ts';

function columns(atMs: number): readonly ScreenColumn<NameRow>[] {
  return [
    shrinking('NAME', { rank: 0, sort: 'name', least: 28, cell: ({ name }) => [name, 'strong'] }),
    word('LAST', { rank: 3, least: 9, cell: ({ outcome }) => outcomeSpan(outcome, '') }),
    ...countColumns(atMs, {
      lookups: 1,
      queries: 4,
      lost: 1,
      errors: 2,
      wasted: 2,
      p50: 7,
      p99: 5,
      clients: 6,
    }),
    word('TYPES', { rank: 8, least: 6, cell: ({ types }) => [types.slice(0, 3).join(' '), 'dim'] }),
    ...countColumns(atMs, { seen: 9 }),
  ];
}

export function namesBody(view: NamesView, fit: PageFit): TopBody {
  return listBody(columns(view.atMs), view, nameItem, fit, 'lookups');
}

function nameItem(row: NameRow): TopItem {
  return countedItem('names', row, [nameFilter(row.name)], nameDetails);
}

function nameDetails(row: NameRow, width: number): readonly StyledLine[] {
  const { name, clients, types, outcome, error } = row;
  const [ending, style] = outcomeSpan(outcome, '');
  return [
    ...paragraph(name, width, { style: 'title' }),
    ...field('Last', ending, width, style),
    ...field('Clients', manyOf(clients), width),
    ...field('Types', types.join(', '), width),
    ...(error > 0
      ? field('Error', `up to ${printNumber(error)} lookups of this name may not be counted`, width)
      : []),
    ...countFields(row, width),
  ];
}
