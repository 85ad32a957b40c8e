/** The Findings page: each fault with the time it started, the affected clients, and a fix. */
import type {
  ExampleRow,
  FindingRow,
  FindingsView,
  NotFoundRow,
} from '../../../../tools/watch/view.ts';
import type { Severity } from '../../../../tools/doctor/severity.ts';
import { count } from '../../../../server/base/counted.ts';
import type { StyleName } from '../../screen/cell-style.ts';
import type { StyledSpan, StyledLine } from '../../screen/styled-line.ts';
import { fixed, shrinking, word, type ScreenColumn } from '../../screen/table-layout.ts';
import {
  latencySpan,
  partyLabel,
  printAge,
  printMoment,
  printNumber,
  printShare,
  printSpan,
  printTime,
} from '../../live/figures.ts';
import { findingStates } from '../../live/finding-words.ts';
import { NOTHING_SEEN, seesNothing } from '../../live/now-parts.ts';
import {
  asRow,
  field,
  heading,
  listBody,
  listField,
  paragraph,
  tableLines,
  type PageFit,
  type TopBody,
  type TopItem,
  type TopRow,
} from './top-page.ts';

const severities: Readonly<Record<Severity, StyleName>> = {
  critical: 'bad',
  warning: 'warn',
  info: 'accent',
};

/** A finding's colour. Those that have ended are dimmed. */
export function findingStyle({
  severity,
  state,
}: Pick<FindingRow, 'severity' | 'state'>): StyleName {
  return state === 'ended' ? 'dim' : severities[severity];
}

/** `since 12:01:03 (2 min)`, `12:01:03 to 12:03:05`. */
export function findingTime({ beganMs, endedMs }: FindingRow, atMs: number): string {
  return endedMs === null
    ? `since ${printTime(beganMs)} (${printAge(atMs - beganMs)})`
    : printSpan(beganMs, endedMs);
}

function stateSpan(row: FindingRow): StyledSpan {
  return [findingStates[row.state], findingStyle(row)];
}

function columns(atMs: number): readonly ScreenColumn<FindingRow>[] {
  return [
    word('STATE', { rank: 2, sort: 'state', cell: stateSpan }),
    word('SEVERITY', {
      rank: 1,
      sort: 'severity',
      cell: (row) => [row.severity, findingStyle(row)],
    }),
    word('CODE', { rank: 0, sort: 'code', least: 6, cell: ({ code }) => [code, 'accent'] }),
    word('BEGAN', {
      rank: 3,
      sort: 'began',
      least: 8,
      cell: ({ beganMs }) => [printTime(beganMs), 'plain'],
    }),
    fixed('FOR', {
      rank: 4,
      least: 5,
      cell: ({ beganMs, endedMs }) => [printAge((endedMs ?? atMs) - beganMs), 'dim'],
    }),
    fixed('QUERIES', {
      rank: 5,
      // Some findings have no example queries, because they concern all of them.
      cell: ({ queries }) => [queries === 0 ? '-' : printNumber(queries), 'plain'],
    }),
    fixed('CLIENTS', { rank: 6, cell: ({ who }) => [printNumber(who.clients), 'plain'] }),
    shrinking('FINDING', {
      rank: 0,
      least: 40,
      cell: (row) => [
        row.subject === '' ? row.title : `${row.title} (${row.subject})`,
        row.state === 'ended' ? 'dim' : 'strong',
      ],
    }),
  ];
}

/** Renders the findings, followed by faults that have been ruled out or cannot be checked. */
export function findingsBody(view: FindingsView, fit: PageFit): TopBody {
  const body = listBody(columns(view.atMs), view, findingItem, fit, 'state');
  const rows: TopRow[] = [...body.rows];
  if (rows.length === 0) {
    const none = view.checkedMs === null ? 'The rules have not run yet.' : 'No faults were found.';
    const text = seesNothing(view) ? NOTHING_SEEN : none;
    const style = seesNothing(view) ? 'dim' : 'good';
    rows.push(...paragraph(text, fit.width, { style }).map(asRow));
  }
  rows.push(...notFound('Ruled out', view.excluded, fit.width));
  rows.push(...notFound('Cannot be checked with this input', view.unknown, fit.width));
  return { ...body, header: view.rows.length === 0 ? [] : body.header, rows };
}

function notFound(title: string, rows: readonly NotFoundRow[], width: number): readonly TopRow[] {
  if (rows.length === 0) return [];
  const table = tableLines(notFoundColumns, rows, width);
  return [...heading(`${title} (${rows.length})`), ...table.slice(1)].map(asRow);
}

const notFoundColumns: readonly ScreenColumn<NotFoundRow>[] = [
  word('CODE', { rank: 0, least: 6, cell: ({ code }) => [code, 'dim'] }),
  shrinking('CAUSE', { rank: 0, least: 20, cell: ({ name }) => [name, 'plain'] }),
  shrinking('REASON', { rank: 1, least: 24, cell: ({ reason }) => [reason, 'dim'] }),
];

export function findingItem(row: FindingRow): TopItem {
  return {
    id: row.id,
    details(ask, width) {
      const view = ask({ view: 'findings', id: row.id, most: 1 });
      return findingDetails(view.rows[0] ?? row, width, view.atMs);
    },
    lookups: lookupsOf(row),
    target() {
      const [example] = row.examples;
      if (example === undefined) return null;
      const { name, client, server } = example;
      const { address: clientId } = client;
      return { name, client, clientId, candidates: [name], server: server.address };
    },
    code: row.code,
  };
}

/** Filters for the clients and names in the finding's examples. */
function lookupsOf({ examples }: FindingRow): TopItem['lookups'] {
  if (examples.length === 0) return null;
  const names = new Set(examples.map(({ name }) => name));
  return [...names].slice(0, 8).map((value) => ({ word: 'name', value, negated: false }));
}

function findingDetails(row: FindingRow, width: number, atMs: number): readonly StyledLine[] {
  const { code, title, subject, severity, confidence, who, times, examples, places } = row;
  const sure = `${Math.min(99, Math.round(confidence * 100))} % sure`;
  const again =
    times > 1 ? `, the ${times}${times === 2 ? 'nd' : times === 3 ? 'rd' : 'th'} time` : '';
  return [
    ...paragraph(title, width, { style: 'title' }),
    [
      [`${code} ${severity}`, findingStyle(row)],
      [`, ${sure}, ${findingTime(row, atMs)}${again}`, 'plain'],
    ],
    ...field('About', subject, width),
    ...listField('Seen', row.seen, width),
    ...field('Why', row.why, width),
    ...field('Who', whoText(row), width),
    ...field(
      'Resolvers',
      who.resolvers.map((each) => `${each.name} ${each.count}`).join(', '),
      width,
    ),
    ...field('Affected', who.affected.join(', '), width),
    ...listField('Fix', row.fix, width),
    ...field('Prove', row.prove, width),
    ...field('Disproved', row.disproved, width),
    ...listField('Where', places, width),
    ...(examples.length === 0
      ? []
      : [
          ...heading(`Example queries (${examples.length} of ${printNumber(row.queries)})`),
          ...tableLines(exampleColumns, examples, width),
        ]),
  ];
}

function whoText({ who: { clients, nodes, groups } }: FindingRow): string {
  if (clients === 0) return '';
  const parts = groups.map(
    ({ name, clients: some, share }) => `${name} (${some} of its clients, ${printShare(share)})`,
  );
  const on = nodes > 0 ? ` on ${count(nodes, 'node', 'nodes')}` : '';
  return `${count(clients, 'client', 'clients')}${on}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`;
}

const exampleColumns: readonly ScreenColumn<ExampleRow>[] = [
  word('TIME', { rank: 2, cell: ({ sentMs }) => [printMoment(sentMs), 'dim'] }),
  fixed('TOOK', { rank: 1, least: 7, cell: ({ tookMs }) => latencySpan(tookMs) }),
  word('TYPE', { rank: 1, cell: ({ type }) => [type, 'plain'] }),
  word('RESULT', {
    rank: 0,
    least: 8,
    cell: ({ rcode }) => (rcode === '' ? ['no reply', 'bad'] : [rcode, 'plain']),
  }),
  shrinking('CLIENT', { rank: 3, least: 12, cell: ({ client }) => [partyLabel(client), 'plain'] }),
  shrinking('SERVER', { rank: 4, least: 12, cell: ({ server }) => [partyLabel(server), 'plain'] }),
  shrinking('NAME', { rank: 0, least: 16, cell: ({ name }) => [name, 'strong'] }),
];
