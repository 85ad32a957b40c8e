/** The Clients page: addresses and pods, with their resolvers and the results of their lookups. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ClientRow, ClientsView } from '../../tools/watch/view.ts';
import { partyName, printNumber, printRcodes, printShare, printSpan } from '../cli/live/figures.ts';
import { countColumns, toneOf } from './count-columns.ts';
import { liveTable } from './live-table.ts';
import { showsClients } from './page-state.ts';
import { lookupsLink, party } from './party-text.ts';

export function clientsPage(view: ClientsView): TemplateResult {
  return liveTable<ClientRow>({
    caption: 'Clients, busiest first',
    list: view,
    usual: 'queries',
    idOf: ({ id }) => id,
    toneOf,
    none: 'No clients have sent queries yet.',
    columns: [
      { head: 'Client', sort: 'name', code: true, cell: partyName },
      {
        head: 'Resolver',
        cell: ({ resolver: { kinds } }) => (kinds.length === 0 ? 'unknown' : kinds.join(', ')),
      },
      ...countColumns,
    ],
    details: ({ resolver, lookups, failedLookups, slowLookups, servers, rcodes, ...client }) =>
      html`<dl class="facts">
        <dt>Client</dt>
        <dd>
          ${party(client)}
          ${client.workload === '' ? nothing : html` · ${client.namespace}/${client.workload}`}
          ${client.node === '' ? nothing : html` · ${client.node}`}
        </dd>
        <dt>Resolver</dt>
        <dd>
          ${resolver.kinds.length === 0 ? 'unknown' : resolver.kinds.join(', ')}${
            resolver.confidence === null ? '' : `, ${printShare(resolver.confidence)} sure`
          }${resolver.why === '' ? nothing : html` <span class="quiet">${resolver.why}</span>`}
        </dd>
        <dt>Count</dt>
        <dd>
          ${printNumber(lookups)} lookups; ${printNumber(failedLookups)} failed,
          ${printNumber(slowLookups)} took 1 s or more
        </dd>
        <dt>Replies</dt>
        <dd>${printRcodes(rcodes)}</dd>
        <dt>Servers</dt>
        <dd>${servers.map((server) => html`${party(server)} `)}</dd>
        <dt>Seen</dt>
        <dd>${printSpan(client.firstMs, client.lastMs)} UTC</dd>
        ${
          showsClients
            ? html`<dt>Lookups</dt>
                <dd>${lookupsLink('show them', `from-ip=${client.address}`)}</dd>
                <dt>Trace</dt>
                <dd>
                  <a class="link" href=${`#trace?client=${encodeURIComponent(client.address)}`}>
                    look up a name as this client
                  </a>
                </dd>`
            : nothing
        }
      </dl>`,
  });
}
