/** The Clients page: addresses and pods, with their resolvers and how their lookups went. */
import type { ClientRow, ClientsView } from '../../../../tools/watch/view.ts';
import type { StyledLine } from '../../screen/styled-line.ts';
import { shrinking, type ScreenColumn } from '../../screen/table-layout.ts';
import { partyLabel, partyText, printSpan } from '../../live/figures.ts';
import { countColumns, countedItem, countFields } from './counted-row.ts';
import {
  field,
  listBody,
  paragraph,
  type PageFit,
  type TopBody,
  type TopItem,
} from './top-page.ts';

function columns(atMs: number): readonly ScreenColumn<ClientRow>[] {
  return [
    shrinking('CLIENT', {
      rank: 0,
      sort: 'name',
      least: 22,
      cell: (row) => [partyLabel(row), row.isGone ? 'dim' : 'strong'],
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
    ...countColumns(atMs, {
      queries: 1,
      lookups: 5,
      lost: 1,
      errors: 2,
      wasted: 3,
      p50: 6,
      p99: 4,
      seen: 7,
    }),
    shrinking('NODE', { rank: 9, least: 8, cell: ({ node }) => [node, 'dim'] }),
  ];
}

export function clientsBody(view: ClientsView, fit: PageFit): TopBody {
  return listBody(columns(view.atMs), view, clientItem, fit, 'queries');
}

function clientItem(row: ClientRow): TopItem {
  const filters = [{ word: 'from-ip', value: row.address, negated: false }] as const;
  return countedItem('clients', row, filters, clientDetails);
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
  const asked = servers.map(partyLabel);
  return [
    ...paragraph(partyLabel(row), width, { style: 'title' }),
    ...field('Who', row.name === '' ? row.address : partyText(row), width),
    ...field(
      'Resolver',
      resolver.kinds.length === 0 ? `ambiguous: ${resolver.why}` : resolverText(resolver),
      width,
    ),
    ...field('Asks', asked.slice(0, 8).join(', '), width),
    ...field('Seen', `${printSpan(firstMs, lastMs)} UTC`, width),
    ...countFields(row, width),
  ];
}
