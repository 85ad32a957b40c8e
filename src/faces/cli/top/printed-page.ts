/** Prints a live view page as text or JSON, for scripts. */
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import { wantsColour, type Io } from '../command.ts';
import { paintFor } from '../page.ts';
import { paintLine } from '../screen/styled-line.ts';
import { fitPage, seePage, unfiltered, type SeenView } from './pages/top-pages.ts';
import type { TopOptions } from './top-options.ts';
import type { SortKey } from './pages/top-page.ts';

/** Default limit of printed rows. */
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
  const lines = [...header, ...rows.map(({ line }) => line)].map((line) => paintLine(line, paint));
  const remarks = seen.remarks.map((remark) => paint.warn(remark));
  return [
    ...lines,
    '',
    ...remarks,
    paint.dim(`${leavesOut}${unfiltered(options.view, options.filters)}`),
    '',
  ].join('\n');
}
