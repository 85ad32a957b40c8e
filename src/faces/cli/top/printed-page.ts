/** Prints a live view page as text or JSON, for scripts. */
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import type { Views } from '../../../tools/watch/view.ts';
import { wantsColour, type Io } from '../command.ts';
import { paintFor } from '../page.ts';
import { paintLine, type StyledLine } from '../screen/styled-line.ts';
import { fitPage, seePage, unfiltered, type SeenView } from './pages/top-pages.ts';
import type { TopOptions } from './top-options.ts';
import { paragraph, type AskModel, type SortKey, type TopRow } from './pages/top-page.ts';

const ROWS = 200;

function see(options: TopOptions, model: Pick<LiveModel, 'view'>): SeenView {
  return seePage((query) => model.view(query), options.view, {
    filters: options.filters,
    sort: options.sort as SortKey | null,
    reversed: options.reversed,
    most: options.most ?? ROWS,
    lastMs: null,
  });
}

/** @param cluster the context; empty if there is at most one cluster */
export function printDocument(
  options: TopOptions,
  model: Pick<LiveModel, 'view'>,
  cluster: string = '',
): string {
  return `${JSON.stringify({ ...(cluster !== '' && { cluster }), ...see(options, model) })}\n`;
}

/** The findings with their details, which the screen shows on request, instead of all other causes. */
function findingLines(
  { rows: findings, excluded, unknown }: Views['findings'],
  rows: readonly TopRow[],
  ask: AskModel,
  width: number,
): readonly StyledLine[] {
  const items = rows.flatMap(({ item }) => item ?? []);
  return [
    ...rows.slice(0, Math.max(1, findings.length)).map(({ line }) => line),
    ...items.flatMap(({ details }) => [[], ...details(ask, width)]),
    ...(excluded.length + unknown.length === 0
      ? []
      : [
          [],
          ...paragraph(
            `${excluded.length} causes are ruled out, ${unknown.length} cannot be checked with this input: -o json`,
            width,
            { style: 'dim' },
          ),
        ]),
  ];
}

/** Prints the page as on the screen, but with all rows. */
export function printPage(options: TopOptions, model: Pick<LiveModel, 'view'>, io: Io): string {
  const seen = see(options, model);
  const paint = paintFor(wantsColour(options, io));
  const { header, rows, leavesOut } = fitPage(seen, {
    width: io.columns,
    widths: new Map(),
    sort: options.sort as SortKey | null,
    reversed: options.reversed,
  });
  const body =
    seen.view === 'findings'
      ? findingLines(seen, rows, (query) => model.view(query), io.columns)
      : rows.map(({ line }) => line);
  const lines = [...header, ...body].map((line) => paintLine(line, paint));
  const remarks = seen.remarks.map((remark) => paint.warn(remark));
  return [
    ...lines,
    '',
    ...remarks,
    paint.dim(`${leavesOut}${unfiltered(options.view, options.filters)}`),
    '',
  ].join('\n');
}
