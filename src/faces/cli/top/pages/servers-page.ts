/** The Servers page: the servers that clients query, the pods behind them, and their upstreams. */
import type { ServerRow, ServersView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, word, type ScreenColumn } from '../../screen/table-layout.ts';
import { countColumns, countedItem, countFields, manyOf } from './counted-row.ts';
import { latencySpan, partyLabel, partyText, printPart, printSpan } from '../../live/figures.ts';
import {
  field,
  listBody,
  paragraph,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';

function columns(atMs: number): readonly ScreenColumn<ServerRow>[] {
  return [
    shrinking('SERVER', {
      rank: 0,
      sort: 'name',
      least: 24,
      cell: (row) => [serverName(row), row.isGone ? 'dim' : 'strong'],
    }),
    word('ROLE', { rank: 4, least: 8, cell: ({ role }) => [role, 'dim'] }),
    ...countColumns(atMs, { queries: 1, lost: 1, errors: 2 }),
    fixed('NXDOMAIN', { rank: 6, cell: (row) => [nxdomainShare(row), 'plain'] }),
    ...countColumns(atMs, { p50: 3, p99: 2 }),
    fixed('MAX', { rank: 7, least: 7, cell: ({ latency }) => latencySpan(latency.max) }),
    ...countColumns(atMs, { clients: 5, seen: 9 }),
    shrinking('UNLIKE ITS FELLOWS', { rank: 8, least: 18, cell: ({ odd }) => [odd, 'warn'] }),
  ];
}

export function serversBody(view: ServersView, fit: PageFit): TopBody {
  return listBody(columns(view.atMs), view, serverItem, fit, 'queries');
}

/** A name or address, with the port unless it is the default. */
function serverName(row: ServerRow): string {
  const port = row.port === 53 ? '' : `:${row.port}`;
  return `${partyLabel(row)}${port}`;
}

function nxdomainShare({ rcodes, queries }: ServerRow): string {
  const count = rcodes.find(({ rcode }) => rcode === 'NXDOMAIN')?.count ?? 0;
  return printPart(count, queries);
}

function serverItem(row: ServerRow): TopItem {
  const filters = [{ word: 'to-ip', value: row.address, negated: false }] as const;
  return { ...countedItem('servers', row, filters, serverDetails), target: () => null };
}

const roles: Readonly<Record<ServerRow['role'], string>> = {
  server: 'clients ask it',
  upstream: 'another server queries it',
  behind: 'it receives queries sent to a Service address',
};

function serverDetails(row: ServerRow, width: number): readonly StyledLine[] {
  const { behind, clients, firstMs, lastMs, role, odd } = row;
  return [
    ...paragraph(serverName(row), width, { style: 'title' }),
    ...field('Who', `${partyText(row)}, port ${row.port}`, width),
    ...field('Role', roles[role], width),
    ...field('Behind it', behind.map(partyText).join(', '), width),
    ...field('Unlike', odd, width, 'warn'),
    ...field('Clients', manyOf(clients), width),
    ...field('Seen', `${printSpan(firstMs, lastMs)} UTC`, width),
    ...countFields(row, width),
  ];
}
