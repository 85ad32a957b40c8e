/** The Lookups page: one row per application call, which expands into its queries and the reasons for them. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { LookupRow, LookupsView, QueryRow } from '../../tools/watch/view.ts';
import { partyName, printLatency, printMoment, printNumber } from '../cli/live/figures.ts';
import { breakable } from '../web/breakable.ts';
import { table } from '../web/table.ts';
import { grafanaLink } from './grafana-link.ts';
import { handOver } from './hand-over.ts';
import { liveTable } from './live-table.ts';
import { showsClients } from './page-state.ts';
import { cacheLink, lookupsLink, nameLink, party, traceLink } from './party-text.ts';

const outcomes: Readonly<Record<LookupRow['outcome'], string>> = {
  answered: 'answered',
  'no-such-name': 'no such name',
  'no-record': 'no such record',
  error: 'error',
  lost: 'no reply',
  waiting: 'waiting',
};

export function lookupsPage(view: LookupsView): TemplateResult {
  return html`${handOver()}${liveTable<LookupRow>({
    caption: 'Lookups, newest first',
    list: view,
    usual: 'time',
    idOf: ({ id }) => String(id),
    toneOf: ({ outcome }) =>
      outcome === 'lost' ? 'error' : outcome === 'error' ? 'warning' : 'plain',
    none: 'No lookups yet. Traffic appears here as it happens.',
    columns: [
      { head: 'Name', sort: 'name', code: true, cell: ({ name }) => html`${breakable(name)}` },
      { head: 'Time', sort: 'time', code: true, cell: ({ startMs }) => printMoment(startMs) },
      { head: 'Client', sort: 'client', code: true, cell: ({ client }) => partyName(client) },
      {
        head: 'Queries',
        sort: 'queries',
        numeric: true,
        cell: ({ queries, more, wasted }) =>
          `${printNumber(queries.length + more)}${wasted === 0 ? '' : ` (${wasted} wasted)`}`,
      },
      {
        head: 'Took',
        sort: 'took',
        numeric: true,
        cell: ({ tookMs, outcome }) => (outcome === 'waiting' ? '…' : printLatency(tookMs)),
      },
      {
        head: 'Result',
        cell: ({ outcome, rcode }) =>
          outcome === 'error' && rcode !== '' ? rcode : outcomes[outcome],
      },
    ],
    details: lookupDetails,
  })}`;
}

function lookupDetails({ queries, more, client, name, startMs }: LookupRow): TemplateResult {
  return html`<p>
      ${party(client)} · ${nameLink('all lookups for this name', name)} ·
      ${showsClients ? html`${lookupsLink('all lookups by this client', `from-ip=${client.address}`)} · ` : nothing}
      ${traceLink('trace this lookup', name, client.address)} ${cacheLink('cache entries', name)}
      ${grafanaLink('Grafana at that time', startMs, startMs)}
    </p>
    ${table<QueryRow>(
      'Queries of this lookup',
      [
        { head: 'After', numeric: true, cell: ({ afterMs }) => printLatency(afterMs) },
        { head: 'Type', code: true, cell: ({ type }) => type },
        { head: 'Name', code: true, cell: (query) => query.name },
        {
          head: 'Server',
          code: true,
          cell: ({ server, behind }) => [partyName(server), ...behind.map(partyName)].join(' ⇒ '),
        },
        {
          head: 'Reply',
          cell: ({ rcode, answers, truncated }) =>
            rcode === ''
              ? 'none'
              : `${rcode}${answers === null ? '' : `, ${answers} records`}${truncated ? ', truncated' : ''}`,
        },
        { head: 'Took', numeric: true, cell: ({ tookMs }) => printLatency(tookMs) },
        { head: 'Why it was sent', cell: ({ why }) => why },
      ],
      queries,
      ({ rcode }) => (rcode === '' ? 'error' : ''),
    )}
    ${more === 0 ? nothing : html`<p class="quiet">${more} more queries were not stored.</p>`}`;
}
