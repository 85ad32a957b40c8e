/** The Names page: names as applications spelled them. */
import { html, type TemplateResult } from 'lit-html';
import type { NameRow, NamesView } from '../../tools/watch/view.ts';
import { printNumber, printRcodes, printTime } from '../cli/live/figures.ts';
import { breakable } from '../web/breakable.ts';
import { clientsColumn, countColumns, toneOf } from './count-columns.ts';
import { facts, liveTable } from './live-table.ts';
import { cacheLink, nameLink, traceLink } from './party-text.ts';

export function namesPage(view: NamesView): TemplateResult {
  return liveTable<NameRow>({
    caption: 'Names, most looked-up first',
    list: view,
    usual: 'lookups',
    idOf: ({ id }) => id,
    toneOf,
    none: 'No names have been looked up yet.',
    columns: [
      { head: 'Name', sort: 'name', code: true, cell: ({ name }) => html`${breakable(name)}` },
      {
        head: 'Lookups',
        sort: 'lookups',
        numeric: true,
        cell: ({ lookups }) => printNumber(lookups),
      },
      clientsColumn,
      ...countColumns,
    ],
    details: ({ name, types, failedLookups, rcodes, lastMs, error }) =>
      facts([
        ['Types', types.join(', ')],
        ['Replies', `${printRcodes(rcodes)}; ${printNumber(failedLookups)} lookups failed`],
        ['Last seen', `${printTime(lastMs)} UTC`],
        ['Count', error === 0 ? 'exact' : `at most ${printNumber(error)} too low`],
        ['Lookups', nameLink('show them', name)],
        [
          'Trace',
          html`${traceLink('compare the clients', name)} ${cacheLink('cache entries', name)}`,
        ],
      ]),
  });
}
