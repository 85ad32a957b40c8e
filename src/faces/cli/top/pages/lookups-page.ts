/** The Lookups page: one row per application call, which expands into its queries. */
import type {
  LookupEnding,
  LookupRow,
  LookupsView,
  QueryReason,
  QueryRow,
} from '../../../../tools/watch/view.ts';
import { nameFilter } from '../../../../tools/watch/name-filter.ts';
import { count } from '../../../../server/base/counted.ts';
import type { StyleName } from '../../screen/cell-style.ts';
import type { StyledSpan, StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, word, type ScreenColumn } from '../../screen/table-layout.ts';
import {
  latencySpan,
  partyLabel,
  partyText,
  printLatency,
  printMoment,
  printNumber,
} from '../../live/figures.ts';
import {
  field,
  heading,
  listBody,
  paragraph,
  tableLines,
  type PageFit,
  type TopBody,
  type TopItem,
  type TraceTarget,
} from './top-page.ts';

/** Users notice lookups that take at least this long, milliseconds. */
const FELT_MS = 1000;

const outcomes: Readonly<Record<LookupEnding, readonly [text: string, style: StyleName]>> = {
  answered: ['answered', 'good'],
  'no-such-name': ['NXDOMAIN', 'warn'],
  'no-record': ['no record', 'warn'],
  error: ['error', 'bad'],
  lost: ['lost', 'bad'],
  waiting: ['waiting', 'dim'],
};

export function outcomeSpan(outcome: LookupEnding, rcode: string): StyledSpan {
  const [text, style] = outcomes[outcome];
  return [outcome === 'error' && rcode !== '' ? rcode : text, style];
}

/** `✓` for found, `!` for found late or after a loss, `✗` for not found, as in `ndots capture -o flow`. */
function mark({ outcome, lost, tookMs }: LookupRow): StyledSpan {
  if (outcome === 'waiting') return ['…', 'dim'];
  if (outcome !== 'answered') return ['✗', outcomes[outcome][1]];
  return lost > 0 || tookMs >= FELT_MS ? ['!', 'warn'] : ['✓', 'good'];
}

const columns: readonly ScreenColumn<LookupRow>[] = [
  word('', { rank: 0, least: 1, cell: mark }),
  word('TIME', { rank: 4, sort: 'time', cell: ({ startMs }) => [printMoment(startMs), 'dim'] }),
  fixed('TOOK', {
    rank: 2,
    sort: 'took',
    least: 7,
    cell: ({ outcome, tookMs }) => (outcome === 'waiting' ? ['', 'dim'] : latencySpan(tookMs)),
  }),
  word('RESULT', { rank: 1, least: 9, cell: ({ outcome, rcode }) => outcomeSpan(outcome, rcode) }),
  fixed('QRY', {
    rank: 5,
    sort: 'queries',
    cell: ({ queries, more }) => [String(queries.length + more), 'plain'],
  }),
  fixed('WASTE', {
    rank: 6,
    cell: ({ wasted }) => [String(wasted), wasted === 0 ? 'dim' : 'plain'],
  }),
  fixed('LOST', { rank: 6, cell: ({ lost }) => [String(lost), lost === 0 ? 'dim' : 'bad'] }),
  shrinking('CLIENT', {
    rank: 3,
    sort: 'client',
    least: 16,
    cell: ({ client }) => [partyLabel(client), client.isGone ? 'dim' : 'plain'],
  }),
  shrinking('NAME', { rank: 0, sort: 'name', least: 18, cell: ({ name }) => [name, 'strong'] }),
];

export function lookupsBody(view: LookupsView, fit: PageFit): TopBody {
  return listBody(columns, view, lookupItem, fit, 'time');
}

/** A few lookups, shown below other content. */
export function lookupLines(rows: readonly LookupRow[], width: number): readonly StyledLine[] {
  return rows.length === 0 ? [] : [...heading('Last lookups'), ...tableLines(columns, rows, width)];
}

function lookupItem(lookup: LookupRow): TopItem {
  return {
    id: String(lookup.id),
    details: (ask, width) => {
      // An unfinished lookup may have progressed since the list was created.
      const [now = lookup] = ask({ view: 'lookups', id: lookup.id, most: 1 }).rows;
      return lookupDetails(now, width);
    },
    lookups: [
      { word: 'from-ip', value: lookup.client.address, negated: false },
      nameFilter(lookup.name),
    ],
    target: () => targetOf(lookup),
    about: { view: 'clients', id: lookup.clientId },
  };
}

export function targetOf({ name, client, clientId, queries }: LookupRow): TraceTarget {
  return {
    ...{ name, client, clientId },
    candidates: [...new Set(queries.map((query) => query.name))],
    server: queries.at(-1)?.server.address ?? '',
  };
}

function lookupDetails(lookup: LookupRow, width: number): readonly StyledLine[] {
  const { name, client, startMs, tookMs, outcome, rcode, wasted, lost, queries, more } = lookup;
  const [ending, style] = outcomeSpan(outcome, rcode);
  const all = queries.length + more;
  const ways = new Set(queries.map(serverText));
  const counts = [
    count(all, 'query', 'queries'),
    ...(wasted > 0 ? [`${wasted} for names that do not exist`] : []),
    ...(lost > 0 ? [`${lost} lost`] : []),
  ].join(', ');
  return [
    ...paragraph(name, width, { style: 'title' }),
    [
      [ending, style],
      [
        outcome === 'waiting' ? `: ${counts}` : ` after ${printLatency(tookMs)}: ${counts}`,
        'plain',
      ],
    ],
    ...field('Client', partyText(client), width),
    ...(ways.size === 1 ? field('Server', [...ways][0]!, width) : []),
    ...field('Began', `${printMoment(startMs)} UTC`, width),
    ...heading('Queries'),
    ...tableLines(ways.size > 1 ? [...queryColumns, serverColumn] : queryColumns, queries, width),
    ...(more > 0
      ? paragraph(`and ${printNumber(more)} more that did not fit into memory`, width, {
          style: 'dim',
        })
      : []),
  ];
}

const queryColumns: readonly ScreenColumn<QueryRow>[] = [
  fixed('AFTER', { rank: 2, least: 7, cell: ({ afterMs }) => [printLatency(afterMs), 'dim'] }),
  fixed('TOOK', { rank: 1, least: 7, cell: ({ tookMs }) => latencySpan(tookMs) }),
  word('TYPE', { rank: 0, cell: ({ type }) => [type, 'plain'] }),
  word('RESULT', { rank: 0, least: 8, cell: queryResult }),
  shrinking('NAME', { rank: 0, least: 24, cell: ({ name }) => [name, 'strong'] }),
  word('WHY', { rank: 3, least: 12, cell: (query) => [reasonText(query), 'accent'] }),
];
/** The server column, for lookups that queried several servers. */
const serverColumn: ScreenColumn<QueryRow> = shrinking('SERVER', {
  rank: 4,
  least: 12,
  cell: (query) => [serverText(query), 'plain'],
});

const reasons: Readonly<Record<QueryReason, string>> = {
  first: 'first',
  'other-family': 'other family',
  search: 'search path',
  'as-written': 'as written',
  'no-reply': 'no reply',
  error: 'after error',
  truncated: 'truncated',
  'next-server': 'next server',
  'other-type': 'other type',
};

/** `no reply, try 2, tcp`. */
function reasonText({ reason, attempt, protocol }: QueryRow): string {
  return [
    reasons[reason],
    ...(attempt > 1 ? [`try ${attempt}`] : []),
    ...(protocol === 'udp' ? [] : [protocol]),
  ].join(', ');
}

function queryResult({ rcode, answers, truncated }: QueryRow): StyledSpan {
  if (rcode === '') return ['no reply', 'bad'];
  if (truncated) return ['truncated', 'warn'];
  // Logs do not contain the number of records.
  if (rcode === 'NOERROR' && answers === null) return [rcode, 'good'];
  if (rcode === 'NOERROR' && answers !== null)
    return answers > 0 ? [`${answers} found`, 'good'] : ['no record', 'warn'];
  return [rcode, rcode === 'NXDOMAIN' ? 'warn' : 'bad'];
}

function serverText({ server, behind }: QueryRow): string {
  return [partyLabel(server), ...behind.map((pod) => `⇒ ${partyLabel(pod)}`)].join(' ');
}
