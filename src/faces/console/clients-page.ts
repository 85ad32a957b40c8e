/** The Clients page: addresses and pods, with their resolvers and the results of their lookups. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { ClientRow, ClientsView } from '../../tools/watch/view.ts';
import { partyName, printNumber, printRcodes, printShare, printSpan } from '../cli/live/figures.ts';
import { countColumns, toneOf } from './count-columns.ts';
import { facts, liveTable } from './live-table.ts';
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
      facts([
        [
          'Client',
          html`${party(client)}
          ${client.workload === '' ? nothing : html` · ${client.namespace}/${client.workload}`}
          ${client.node === '' ? nothing : html` · ${client.node}`}`,
        ],
        [
          'Resolver',
          html`${resolver.kinds.length === 0 ? 'unknown' : resolver.kinds.join(', ')}${
            resolver.confidence === null ? '' : `, ${printShare(resolver.confidence)} sure`
          }${resolver.why === '' ? nothing : html` <span class="quiet">${resolver.why}</span>`}`,
        ],
        [
          'Count',
          `${printNumber(lookups)} lookups; ${printNumber(failedLookups)} failed, ${printNumber(slowLookups)} took 1 s or more`,
        ],
        ['Replies', printRcodes(rcodes)],
        ['Servers', servers.map((server) => html`${party(server)} `)],
        ['Seen', `${printSpan(client.firstMs, client.lastMs)} UTC`],
        ...(showsClients ? linksOf(client) : []),
      ]),
  });
}

function linksOf({ address }: Pick<ClientRow, 'address'>): Parameters<typeof facts>[0] {
  return [
    ['Lookups', lookupsLink('show them', `from-ip=${address}`)],
    [
      'Trace',
      html`<a class="link" href=${`#trace?client=${encodeURIComponent(address)}`}>
        look up a name as this client
      </a>`,
    ],
  ];
}
