/** The Clients page: addresses and pods, with their resolvers and how their lookups went. */
import type { ClientRow, ClientsView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, type ScreenColumn } from '../../screen/table-layout.ts';
import {
  badCount,
  latencySpan,
  partyName,
  partyText,
  printAge,
  printNumber,
  printTime,
  wasteSpan,
} from '../../live/figures.ts';
import { leavesOut } from './leaves-out.ts';
import { countFields } from './count-fields.ts';
import {
  field,
  paragraph,
  tableBody,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';
import { lookupLines, targetOf } from './lookups-page.ts';

/** Number of lookups in a row's details. */
const LAST_LOOKUPS = 15;

function columns(atMs: number): readonly ScreenColumn<ClientRow>[] {
  return [
    shrinking('CLIENT', {
      rank: 0,
      sort: 'name',
      least: 22,
      cell: (row) => [partyName(row), row.isGone ? 'dim' : 'strong'],
    }),
    shrinking('WORKLOAD', { rank: 8, least: 12, cell: ({ workload }) => [workload, 'plain'] }),
    shrinking('RESOLVER', {
      rank: 4,
      least: 10,
      cell: ({ resolver }) => [
        resolverText(resolver),
        resolver.confidence === null ? 'dim' : 'accent',
      ],
    }),
    fixed('QUERIES', {
      rank: 1,
      sort: 'queries',
      cell: ({ queries }) => [printNumber(queries), 'plain'],
    }),
    fixed('LOOKUPS', {
      rank: 5,
      sort: 'lookups',
      cell: ({ lookups }) => [printNumber(lookups), 'plain'],
    }),
    fixed('LOST', { rank: 1, sort: 'lost', cell: ({ lost }) => badCount(lost) }),
    fixed('FAILED', { rank: 2, sort: 'failed', cell: ({ failed }) => badCount(failed) }),
    fixed('WASTED', { rank: 3, sort: 'wasted', cell: wasteSpan }),
    fixed('P50', { rank: 6, least: 7, cell: ({ latency }) => latencySpan(latency.p50) }),
    fixed('P99', {
      rank: 4,
      least: 7,
      sort: 'latency',
      cell: ({ latency }) => latencySpan(latency.p99),
    }),
    fixed('SEEN', {
      rank: 7,
      least: 6,
      sort: 'seen',
      cell: ({ lastMs }) => [printAge(atMs - lastMs), 'dim'],
    }),
    shrinking('NODE', { rank: 9, least: 8, cell: ({ node }) => [node, 'dim'] }),
  ];
}

export function clientsBody(view: ClientsView, fit: PageFit): TopBody {
  return {
    ...tableBody(columns(view.atMs), view.rows, (row) => clientItem(row), {
      ...fit,
      sort: fit.sort ?? 'queries',
    }),
    leavesOut: leavesOut(view, 'client', 'clients'),
  };
}

function clientItem(row: ClientRow): TopItem {
  const filters = [{ word: 'from-ip', value: row.address, negated: false }] as const;
  return {
    id: row.id,
    details(ask, width) {
      const [now = row] = ask({ view: 'clients', id: row.id, most: 1 }).rows;
      const last = ask({ view: 'lookups', filters, most: LAST_LOOKUPS }).rows;
      return [...clientDetails(now, width), ...lookupLines(last, width)];
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

/** `glibc 98 %`, `glibc or c-ares 84 %`, `forwarder`, `?`. */
function resolverText({ kinds, confidence }: ClientRow['resolver']): string {
  if (kinds.length === 0) return '?';
  const names = kinds.join(' or ');
  // Never 100 %, because the resolver is only inferred.
  return confidence === null ? names : `${names} ${Math.min(99, Math.round(confidence * 100))} %`;
}

function clientDetails(row: ClientRow, width: number): readonly StyledLine[] {
  const { resolver, servers, firstMs, lastMs } = row;
  const asked = servers.map(partyName);
  return [
    ...paragraph(partyName(row), width, { style: 'title' }),
    ...field('Who', row.name === '' ? row.address : partyText(row), width),
    ...field(
      'Resolver',
      resolver.kinds.length === 0 ? `ambiguous: ${resolver.why}` : resolverText(resolver),
      width,
    ),
    ...field('Asks', asked.slice(0, 8).join(', '), width),
    ...field('Seen', `${printTime(firstMs)} to ${printTime(lastMs)} UTC`, width),
    ...countFields(row, width),
  ];
}
