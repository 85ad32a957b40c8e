/** The Servers page: latency and losses for servers and upstreams, with outliers marked. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ServerRow, ServersView } from '../../tools/watch/view.ts';
import { partyName, printLatencies, printRcodes, printSpan } from '../cli/live/figures.ts';
import { clientsColumn, countColumns, toneOf } from './count-columns.ts';
import { liveTable } from './live-table.ts';
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
      html`<dl class="facts">
        <dt>Server</dt>
        <dd>${party(server)}</dd>
        ${
          odd === ''
            ? nothing
            : html`<dt>Unlike the others</dt>
                <dd>${odd}</dd>`
        }
        <dt>Reply time</dt>
        <dd>${printLatencies(latency).replaceAll('  ', ' · ')}</dd>
        <dt>Replies</dt>
        <dd>${printRcodes(rcodes)}</dd>
        ${
          behind.length === 0
            ? nothing
            : html`<dt>Behind it</dt>
                <dd>${behind.map((each) => html`${party(each)} `)}</dd>`
        }
        <dt>Seen</dt>
        <dd>${printSpan(firstMs, lastMs)} UTC</dd>
        ${
          server.role === 'behind' && !showsClients
            ? nothing
            : html`<dt>Lookups</dt>
                <dd>
                  ${lookupsLink('show them', `${server.role === 'behind' ? 'to-ip' : 'server-ip'}=${server.address}`)}
                </dd>`
        }
      </dl>`,
  });
}
