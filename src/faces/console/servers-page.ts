/** The Servers page: latency and losses for servers and upstreams, with outliers marked. */
import { html, type TemplateResult } from 'lit-html';
import type { ServerRow, ServersView } from '../../tools/watch/view.ts';
import { partyName, printLatencies, printRcodes, printSpan } from '../cli/live/figures.ts';
import { clientsColumn, countColumns, toneOf } from './count-columns.ts';
import { facts, liveTable } from './live-table.ts';
import { showsClients } from './page-state.ts';
import { lookupsLink, party } from './party-text.ts';

const roles: Readonly<Record<ServerRow['role'], string>> = {
  server: 'server',
  upstream: 'upstream',
  behind: 'behind a service',
};

export function serversPage(view: ServersView): TemplateResult {
  return liveTable<ServerRow>({
    caption: 'Servers and upstreams, busiest first',
    list: view,
    usual: 'queries',
    idOf: ({ id }) => id,
    toneOf: (row) => (row.odd === '' ? toneOf(row) : 'warning'),
    none: 'No servers have been queried yet.',
    columns: [
      {
        head: 'Server',
        sort: 'name',
        code: true,
        cell: (row) => (row.port === 53 ? partyName(row) : `${partyName(row)} port ${row.port}`),
      },
      {
        head: 'Role',
        cell: ({ role, odd }) => (odd === '' ? roles[role] : `${roles[role]}, odd one`),
      },
      clientsColumn,
      ...countColumns,
    ],
    details: ({ odd, behind, rcodes, latency, firstMs, lastMs, ...server }) =>
      facts([
        ['Server', party(server)],
        ...(odd === '' ? [] : [['Unlike the others', odd] as const]),
        ['Reply time', printLatencies(latency).replaceAll('  ', ' · ')],
        ['Replies', printRcodes(rcodes)],
        ...(behind.length === 0
          ? []
          : [['Behind it', behind.map((each) => html`${party(each)} `)] as const]),
        ['Seen', `${printSpan(firstMs, lastMs)} UTC`],
        ...(server.role === 'behind' && !showsClients
          ? []
          : [['Lookups', lookupsLink('show them', filterOf(server))] as const]),
      ]),
  });
}

function filterOf({ role, address }: Pick<ServerRow, 'role' | 'address'>): string {
  return `${role === 'behind' ? 'to-ip' : 'server-ip'}=${address}`;
}
