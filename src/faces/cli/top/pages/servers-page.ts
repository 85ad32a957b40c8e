/** The Servers page: the servers that clients query, the pods behind them, and their upstreams. */
import type { ServerRow, ServersView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, type ScreenColumn } from '../../screen/table-layout.ts';
import { countFields } from './count-fields.ts';
import {
  badCount,
  latencySpan,
  partyName,
  partyText,
  printAge,
  printNumber,
  printShare,
  printTime,
} from '../../live/figures.ts';
import { leavesOut } from './leaves-out.ts';
import {
  field,
  paragraph,
  tableBody,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';
import { lookupLines } from './lookups-page.ts';

/** Number of lookups in a row's details. */
const LAST_LOOKUPS = 15;

function columns(atMs: number): readonly ScreenColumn<ServerRow>[] {
  return [
    shrinking('SERVER', {
      rank: 0,
      sort: 'name',
      least: 24,
      cell: (row) => [serverName(row), row.isGone ? 'dim' : 'strong'],
    }),
    fixed('ROLE', { rank: 4, align: 'left', least: 8, cell: ({ role }) => [role, 'dim'] }),
    fixed('QUERIES', {
      rank: 1,
      sort: 'queries',
      cell: ({ queries }) => [printNumber(queries), 'plain'],
    }),
    fixed('LOST', { rank: 1, sort: 'lost', cell: ({ lost }) => badCount(lost) }),
    fixed('FAILED', { rank: 2, sort: 'failed', cell: ({ failed }) => badCount(failed) }),
    fixed('NXDOMAIN', { rank: 6, cell: (row) => [nxdomainShare(row), 'plain'] }),
    fixed('P50', { rank: 3, least: 7, cell: ({ latency }) => latencySpan(latency.p50) }),
    fixed('P99', {
      rank: 2,
      least: 7,
      sort: 'latency',
      cell: ({ latency }) => latencySpan(latency.p99),
    }),
    fixed('MAX', { rank: 7, least: 7, cell: ({ latency }) => latencySpan(latency.max) }),
    fixed('CLIENTS', {
      rank: 5,
      sort: 'clients',
      cell: ({ clients }) => [clients === null ? 'many' : printNumber(clients), 'plain'],
    }),
    fixed('SEEN', {
      rank: 9,
      least: 6,
      sort: 'seen',
      cell: ({ lastMs }) => [printAge(atMs - lastMs), 'dim'],
    }),
    shrinking('UNLIKE ITS FELLOWS', { rank: 8, least: 18, cell: ({ odd }) => [odd, 'warn'] }),
  ];
}

export function serversBody(view: ServersView, fit: PageFit): TopBody {
  return {
    ...tableBody(columns(view.atMs), view.rows, serverItem, {
      ...fit,
      sort: fit.sort ?? 'queries',
    }),
    leavesOut: leavesOut(view, 'server', 'servers'),
  };
}

/** A name or address, with the port unless it is the default. */
function serverName(row: ServerRow): string {
  const port = row.port === 53 ? '' : `:${row.port}`;
  return `${partyName(row)}${port}`;
}

function nxdomainShare({ rcodes, queries }: ServerRow): string {
  const count = rcodes.find(({ rcode }) => rcode === 'NXDOMAIN')?.count ?? 0;
  return printShare(queries === 0 ? 0 : count / queries);
}

function serverItem(row: ServerRow): TopItem {
  const filters = [{ word: 'to-ip', value: row.address, negated: false }] as const;
  return {
    id: row.id,
    details(ask, width) {
      const [now = row] = ask({ view: 'servers', id: row.id, most: 1 }).rows;
      const last = ask({ view: 'lookups', filters, most: LAST_LOOKUPS }).rows;
      return [...serverDetails(now, width), ...lookupLines(last, width)];
    },
    lookups: filters,
    target: () => null,
    code: null,
    about: null,
  };
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
    ...field('Clients', clients === null ? 'many' : printNumber(clients), width),
    ...field('Seen', `${printTime(firstMs)} to ${printTime(lastMs)} UTC`, width),
    ...countFields(row, width),
  ];
}
