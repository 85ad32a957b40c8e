/** The Now page: rates, latency, wasted queries, findings and changes at a glance. */
import { outcomeText } from '../../../console/reload-text.ts';
import type { ReloadMark } from '../../../../tools/watch/reload-shape.ts';
import type { ChangeRow, FindingRow, NowView, WasteRow } from '../../../../tools/watch/view.ts';
import { count } from '../../../../server/base/counted.ts';
import { fit, lineWidth, type StyledSpan, type StyledLine } from '../../screen/styled-line.ts';
import { fitTable, fixed, shrinking, word, type ScreenColumn } from '../../screen/table-layout.ts';
import {
  latencySpan,
  printAge,
  printLatency,
  printNumber,
  printPart,
  printRate,
  printShare,
  printTime,
  sparkline,
} from '../../live/figures.ts';
import {
  asRow,
  field,
  heading,
  listField,
  paragraph,
  type TopBody,
  type TopItem,
  type TopRow,
} from './top-page.ts';
import {
  changeWords,
  coursesOf,
  NOTHING_SEEN,
  NOW_LISTED,
  planText,
  seesNothing,
} from '../../live/now-parts.ts';
import type { StyleName } from '../../screen/cell-style.ts';
import { findingItem, findingStyle, findingTime } from './findings-page.ts';

/** Column widths in an overview row, for the label, the rate, and totals on the right. */
const LABEL = 10;
const RATE = 8;
const SUMS = 43;
/** On narrower screens, the sparkline is omitted. */
const SPARK_LEAST = 10;
export function nowBody(view: NowView, { width }: { readonly width: number }): TopBody {
  return {
    header: [],
    rows: [
      ...overview(view, width).map(asRow),
      ...findings(view, width),
      ...waste(view, width),
      ...changes(view, width),
    ],
    leavesOut: nowLeavesOut(view),
  };
}

function nowLeavesOut({ lostByKernel, window, atMs }: NowView): string {
  const seen = printAge(Math.max(0, Math.min(atMs, window.toMs) - window.fromMs));
  return `left: latest, right: totals of the last ${seen}, kernel lost ${printNumber(lostByKernel)}`;
}

interface Measure {
  readonly label: string;
  readonly now: StyledSpan;
  readonly course: readonly (number | null)[];
  readonly sums: string;
}

function measures(view: NowView): readonly Measure[] {
  const { rates, queries, lookups, lost, failed, latency } = view;
  const course = coursesOf(view.series, view.window.toMs);
  const share = (some: number, of: number): string =>
    `${printNumber(some)} (${printPart(some, of)})`;
  const bad = (rate: number): StyledSpan => [printRate(rate), rate === 0 ? 'dim' : 'bad'];
  const { p50, p99, max } = latency;
  return [
    {
      label: 'Queries',
      now: [printRate(rates.queries), 'strong'],
      course: course.rates.queries,
      sums: `${printNumber(queries)}, ${printNumber(view.waiting)} waiting`,
    },
    {
      label: 'Lookups',
      now: [printRate(rates.lookups), 'strong'],
      course: course.rates.lookups,
      sums: `${printNumber(lookups)}, ${printNumber(view.slowLookups)} slow, ${printNumber(view.failedLookups)} failed`,
    },
    { label: 'Lost', now: bad(rates.lost), course: course.rates.lost, sums: share(lost, queries) },
    {
      label: 'Errors',
      now: bad(rates.failed),
      course: course.rates.failed,
      sums: share(failed, queries),
    },
    {
      label: 'Wasted',
      now: [printRate(rates.wasted), rates.wasted === 0 ? 'dim' : 'warn'],
      course: course.rates.wasted,
      sums: share(view.wasted, queries),
    },
    {
      label: 'Reply p99',
      now: latencySpan(course.p99.findLast((each) => each !== null) ?? p99),
      course: course.p99,
      sums: `of all: p50 ${printLatency(p50)} p99 ${printLatency(p99)} max ${printLatency(max)}`,
    },
  ];
}

function overview(view: NowView, width: number): readonly StyledLine[] {
  const room = width - LABEL - RATE - 2;
  const spark = Math.min(60, room - SUMS - 1);
  const lines = measures(view).map(({ label, now: [now, style], course, sums }): StyledLine => {
    const left: StyledSpan[] = [
      [fit(label, LABEL), 'accent'],
      [`${fit(now, RATE, 'right')}  `, style],
    ];
    if (spark < SPARK_LEAST) return [...left, [fit(sums, room).trimEnd(), 'plain']];
    return [
      ...left,
      [fit(sparkline(course, spark).padStart(spark), spark), style === 'strong' ? 'accent' : style],
      [` ${fit(sums, SUMS).trimEnd()}`, 'plain'],
    ];
  });
  const mixture = [
    ['Replies', parts(view.rcodes.map(({ rcode, count: some }) => [rcode, some]))],
    ['Types', parts(view.types.map(({ type, count: some }) => [type, some]))],
    ['Over', parts(view.protocols.map(({ protocol, count: some }) => [protocol, some]))],
    [
      'From',
      `${count(view.clients, 'client', 'clients')} to ${count(view.servers, 'server', 'servers')}`,
    ],
  ] as const;
  return [...lines, ...packedFields(mixture, width)];
}

/** `NOERROR 40 %, NXDOMAIN 58 %`: the most frequent values. */
function parts(counts: readonly (readonly [name: string, count: number])[]): string {
  const sum = counts.reduce((all, [, some]) => all + some, 0);
  const shown = counts.slice(0, 4).map(([name, some]) => `${name} ${printShare(some / sum)}`);
  return [...shown, ...(counts.length > 4 ? [`${counts.length - 4} others`] : [])].join(', ');
}

/** Fits as many short fields on a line as possible. */
function packedFields(
  fields: readonly (readonly [label: string, text: string])[],
  width: number,
): readonly StyledLine[] {
  const lines: StyledLine[] = [];
  for (const [label, text] of fields) {
    if (text === '') continue;
    const last = lines.at(-1);
    if (last !== undefined && lineWidth(last) + label.length + text.length + 4 <= width)
      lines[lines.length - 1] = [...last, [`   ${label} `, 'accent'], [text, 'plain']];
    else
      lines.push([
        [fit(label, LABEL), 'accent'],
        [fit(text, Math.min(text.length, width - LABEL)), 'plain'],
      ]);
  }
  return lines;
}

function findings(view: NowView, width: number): readonly TopRow[] {
  const { findings: rows, excluded, unknown, atMs } = view;
  const checked = `${excluded} ruled out, ${unknown} cannot be checked with this input`;
  const title = heading('Findings');
  if (rows.length === 0) {
    const isUnchecked = excluded + unknown === 0;
    const none = isUnchecked ? 'The rules have not run yet.' : `None: ${checked}.`;
    const text = seesNothing(view) ? NOTHING_SEEN : none;
    const style = isUnchecked || seesNothing(view) ? 'dim' : 'good';
    return [...title, ...paragraph(text, width, { style })].map(asRow);
  }
  const columns: readonly ScreenColumn<FindingRow>[] = [
    word('', { rank: 0, cell: (row) => [row.severity, findingStyle(row)] }),
    word('', { rank: 1, cell: ({ code }) => [code, 'accent'] }),
    word('', { rank: 2, cell: (row) => [findingTime(row, atMs), 'dim'] }),
    shrinking('', {
      rank: 0,
      least: 24,
      cell: ({ title: text, subject }) => [
        subject === '' ? text : `${text} (${subject})`,
        'strong',
      ],
    }),
  ];
  const table = fitTable(columns, rows, width, new Map(), null);
  return [
    ...title.map(asRow),
    ...rows.map((row) => ({ line: table.row(row), item: findingItem(row) })),
    ...paragraph(`Other causes: ${checked}.`, width, { style: 'dim' }).map(asRow),
  ];
}

const wasteColumns: readonly ScreenColumn<WasteRow>[] = [
  shrinking('WORKLOAD', { rank: 0, least: 16, cell: ({ id }) => [id, 'strong'] }),
  fixed('CLIENTS', { rank: 4, cell: ({ clients }) => [printNumber(clients), 'plain'] }),
  fixed('QUERIES', { rank: 3, cell: ({ queries }) => [printNumber(queries), 'plain'] }),
  fixed('WASTED', { rank: 0, cell: ({ wasted, queries }) => [printPart(wasted, queries), 'warn'] }),
  fixed('RATE', { rank: 2, least: 7, cell: ({ wastedRate }) => [printRate(wastedRate), 'plain'] }),
  shrinking('WHAT ENDS IT', { rank: 1, least: 20, cell: ({ plan }) => [planText(plan), 'good'] }),
];

function waste(view: NowView, width: number): readonly TopRow[] {
  const { workloads, share, queries } = view.waste;
  if (queries === 0) return [];
  const title = [
    [],
    ...paragraph(
      `Wasted by search paths: ${printShare(share)} of all queries, for names that do not exist`,
      width,
      { style: 'title' },
    ),
  ];
  const rows = workloads.rows.slice(0, NOW_LISTED);
  const table = fitTable(wasteColumns, rows, width, new Map(), null);
  const left = workloads.total - rows.length;
  return [
    ...title.map(asRow),
    ...(rows.length === 0 ? [] : [asRow(table.header)]),
    ...rows.map((row) => ({ line: table.row(row), item: wasteItem(row) })),
    ...(left > 0 ? [asRow([[`and ${count(left, 'more', 'more')}`, 'dim']])] : []),
  ];
}

function wasteItem(row: WasteRow): TopItem {
  return {
    id: `waste ${row.id}`,
    details: (_ask, width) => wasteDetails(row, width),
    lookups: wasteFilters(row),
  };
}

function wasteFilters({ namespace, workload, id }: WasteRow): TopItem['lookups'] {
  if (workload !== '')
    return [
      {
        word: 'workload',
        value: `${namespace === '' ? '' : `${namespace}/`}${workload}`,
        negated: false,
      },
    ];
  return [{ word: 'from-ip', value: id, negated: false }];
}

function wasteDetails(row: WasteRow, width: number): readonly StyledLine[] {
  const { id, clients, queries, wasted, wastedRate, plan } = row;
  const share = printPart(wasted, queries);
  const lines = [
    ...paragraph(id, width, { style: 'title' }),
    ...paragraph(
      `${printNumber(wasted)} of ${printNumber(queries)} queries (${share}, ${printRate(wastedRate)}) of ${count(clients, 'client', 'clients')} were for names that only a search path created.`,
      width,
    ),
  ];
  if (plan === null)
    return [...lines, ...paragraph('No fix is known yet.', width, { style: 'dim' })];
  const { ndots, broken, unknown, dotted, patch, resolver } = plan;
  const { queriesNow: now, queriesThen: then } = plan;
  return [
    ...lines,
    ...field(
      'Fix',
      ndots === null
        ? 'no lower ndots is safe for it'
        : `${planText(plan)}: of its most queried names, ${printNumber(now)} queries become ${printNumber(then)}`,
      width,
      ndots === null ? 'warn' : 'good',
    ),
    ...field('Resolver', resolver, width),
    ...listField('Breaks', broken, width),
    ...listField('Not known', unknown, width),
    ...listField(
      'Final dot',
      dotted.map(({ name, saved }) => `${name} saves ${printNumber(saved)} queries`),
      width,
    ),
    ...(patch === ''
      ? []
      : [...heading('Patch'), ...patch.split('\n').map((text): StyledLine => [[text, 'plain']])]),
  ];
}

const changeStyles: Readonly<Record<ChangeRow['kind'], StyleName>> = {
  'finding-began': 'bad',
  'finding-ended': 'good',
  'server-new': 'accent',
  'server-gone': 'dim',
  'server-back': 'good',
  'pod-gone': 'dim',
  rate: 'warn',
  reload: 'accent',
  input: 'dim',
};

function changes({ changes: list, reloads }: NowView, width: number): readonly TopRow[] {
  if (list.rows.length === 0) return [];
  const rows = list.rows.slice(0, NOW_LISTED);
  const columns: readonly ScreenColumn<ChangeRow>[] = [
    word('', { rank: 0, cell: ({ atMs }) => [printTime(atMs), 'dim'] }),
    word('', { rank: 0, cell: ({ kind }) => [changeWords[kind], changeStyles[kind]] }),
    shrinking('', { rank: 0, least: 20, cell: ({ text }) => [text, 'plain'] }),
  ];
  const table = fitTable(columns, rows, width, new Map(), null);
  const left = list.total - rows.length;
  return [
    ...heading('What changed').map(asRow),
    ...rows.map((row) => ({ line: table.row(row), item: changeItem(row, reloads) })),
    ...(left > 0
      ? [asRow([[`and ${count(left, 'earlier change', 'earlier changes')}`, 'dim']])]
      : []),
  ];
}

/** Answers that were seen to change. `ndots console` also shows how the Corefile changed. */
function reloadDetails(
  { servers, compared, changed, answers }: ReloadMark,
  width: number,
): readonly StyledLine[] {
  const lines = [
    ...listField('Servers', servers, width),
    ...field('Compared', count(compared, 'answer', 'answers'), width),
    ...field('Changed', String(changed), width, changed === 0 ? 'good' : 'warn'),
  ];
  for (const { name, type, before, after, clients } of answers)
    lines.push(
      [],
      ...paragraph(`${name} ${type}`, width, { style: 'strong' }),
      ...field('Before', outcomeText(before), width),
      ...field('After', outcomeText(after), width),
      ...field('Clients', clients === null ? 'over 64' : String(clients), width),
    );
  const left = changed - answers.length;
  return left > 0 ? [...lines, [], [[`and ${count(left, 'other', 'others')}`, 'dim']]] : lines;
}

function changeItem(
  { atMs, kind, text, about, reload }: ChangeRow,
  reloads: readonly ReloadMark[],
): TopItem {
  const found = reloads.find(({ id }) => id === reload);
  return {
    id: `change ${atMs} ${kind} ${text}`,
    details: (_ask, width) => [
      ...paragraph(text, width, { style: 'title' }),
      ...field('When', `${printTime(atMs)} UTC`, width),
      ...(found === undefined ? [] : reloadDetails(found, width)),
    ],
    lookups: null,
    ...(about !== null && { about: { view: about.view, id: String(about.id) } }),
  };
}
