/** Draws the live view with its tabs, status and key hints, and either the page or a pane over it. */
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import { printFilterLine } from '../../../tools/capture/filter-line.ts';
import { viewNames, type ViewHead, type ViewName } from '../../../tools/watch/view.ts';
import { printBytes } from '../../../server/base/limits.ts';
import type { CellGrid } from '../screen/cell-grid.ts';
import { SELECTED, STYLE } from '../screen/cell-style.ts';
import { drawLine, lineWidth, type StyledSpan, type StyledLine } from '../screen/styled-line.ts';
import { printAge, printNumber, printTime } from '../live/figures.ts';
import type { FilterPrompt } from './filter-prompt.ts';
import type { ListCursor } from './list-cursor.ts';
import { pageTitles, unfiltered } from './pages/top-pages.ts';
import type { PacketFeed } from '../live/live-feed.ts';
import type { TopBody } from './pages/top-page.ts';

export interface TopFrame {
  readonly view: ViewName;
  readonly seen: ViewHead<ViewName> | null;
  readonly feed: PacketFeed;
  readonly isPaused: boolean;
  readonly filters: readonly GivenFilter[];
  /** Null: the whole window. */
  readonly spanMs: number | null;
  readonly prompt: FilterPrompt | null;
  readonly message: string;
  /** The pane over the page, or null if there is none. */
  readonly pane: {
    readonly title: string;
    readonly lines: readonly StyledLine[];
    readonly offset: number;
  } | null;
  /** Returns the keys that apply to the selected row. */
  can(): ReadonlySet<string>;
  readonly body: TopBody | null;
  readonly cursor: ListCursor;
}

/** On screens with fewer rows, only the tabs, the page and one line below it are drawn. */
const LOW = 10;

/** @returns the number of visible page lines */
export function drawFrame(grid: CellGrid, frame: TopFrame): number {
  const isLow = grid.rows < LOW;
  drawTabs(grid, frame);
  if (!isLow) drawStatus(grid, 1, frame);
  const top = isLow ? 1 : 2;
  const bottom = grid.rows - (isLow ? 1 : 2);
  const height =
    frame.pane === null
      ? drawPage(grid, top, bottom, frame)
      : drawPane(grid, top, bottom, frame.pane);
  const { pane, body } = frame;
  const left =
    pane === null
      ? `${body?.leavesOut ?? ''}${unfiltered(frame.view, frame.filters)}`
      : paneEnd(pane, height);
  if (!isLow) grid.text(1, grid.rows - 2, left, STYLE.dim, grid.columns - 2);
  drawLast(grid, grid.rows - 1, frame, isLow ? left : '');
  return height;
}

function drawTabs(grid: CellGrid, { view, seen, feed, isPaused }: TopFrame): void {
  const state = stateSpans(feed, isPaused);
  const time: StyledSpan[] =
    seen === null || seen.atMs <= 0 ? [] : [[`${printTime(seen.atMs)} UTC `, 'plain']];
  const right: StyledLine = [...time, ...state];
  const all = viewNames.map((name, at) => ` ${at + 1} ${pageTitles[name]} `);
  const isRoomy = all.join('').length + lineWidth(right) + 2 <= grid.columns;
  let column = 0;
  viewNames.forEach((name, at) => {
    const text = isRoomy || name === view ? all[at]! : ` ${at + 1} `;
    column = grid.text(column, 0, text, name === view ? STYLE.bar : STYLE.plain);
  });
  const start = grid.columns - lineWidth(right) - 1;
  // The state is more important than the time.
  if (start > column) drawLine(grid, start, 0, right);
  else drawLine(grid, Math.max(column + 1, grid.columns - lineWidth(state) - 1), 0, state);
}

function stateSpans(
  { pace, isOver, progress }: PacketFeed,
  isPaused: boolean,
): readonly StyledSpan[] {
  const where = progress === '' ? '' : ` ${progress}`;
  if (isPaused)
    return [
      ['PAUSED', 'bar'],
      [where, 'plain'],
    ];
  if (isOver) return [['END', 'accent']];
  if (pace === null) return [['LIVE', 'good']];
  return [[`${pace.text}${where}`, 'good']];
}

function drawStatus(grid: CellGrid, row: number, { seen, feed, filters, spanMs }: TopFrame): void {
  const inputs = seen?.inputs ?? [];
  const queries = inputs.reduce((sum, each) => sum + each.queries, 0);
  const failed = inputs.find(({ state }) => state === 'failed');
  const odd = inputs.find((each) => each.odd !== '');
  const parts: StyledLine[] = [];
  if (filters.length > 0)
    parts.push([
      ['filter ', 'accent'],
      [printFilterLine(filters), 'warn'],
    ]);
  parts.push([[feed.name, 'strong']]);
  if (failed !== undefined) parts.push([[`${failed.name}: ${failed.why}`, 'bad']]);
  if (odd !== undefined) parts.push([[`${odd.name}: ${odd.odd}`, 'warn']]);
  parts.push([[`${printNumber(queries)} queries`, 'plain']]);
  if (spanMs !== null) parts.push([[`last ${printAge(spanMs)} only`, 'warn']]);
  if (seen !== null) {
    const { usedBytes, limitBytes, dropped } = seen.memory;
    parts.push([[`memory ${printBytes(usedBytes)} of ${printBytes(limitBytes)}`, 'dim']]);
    if (dropped !== '') parts.push([[dropped, 'warn']]);
    if (seen.remarks.length > 0) parts.push([[seen.remarks[0]!, 'warn']]);
  }
  const line = parts.flatMap((part, at) => (at === 0 ? part : [[' · ', 'dim'] as const, ...part]));
  drawLine(grid, 1, row, line, grid.columns - 2);
}

function drawPage(grid: CellGrid, top: number, bottom: number, { body, cursor }: TopFrame): number {
  if (body === null) return Math.max(1, bottom - top);
  body.header.forEach((line, at) => drawLine(grid, 1, top + at, line));
  const from = top + body.header.length;
  const height = Math.max(1, bottom - from);
  cursor.settle(body.rows, height);
  for (let at = 0; at < height; at++) {
    const row = body.rows[cursor.offset + at];
    if (row === undefined) break;
    drawLine(grid, 1, from + at, row.line);
    if (cursor.offset + at === cursor.index)
      grid.restyle(0, from + at, grid.columns, (style) => style | SELECTED);
  }
  return height;
}

function drawPane(
  grid: CellGrid,
  top: number,
  bottom: number,
  { lines, offset }: NonNullable<TopFrame['pane']>,
): number {
  const height = Math.max(1, bottom - top);
  const from = Math.max(0, Math.min(offset, lines.length - height));
  for (let at = 0; at < height; at++) {
    const line = lines[from + at];
    if (line !== undefined) drawLine(grid, 1, top + at, line);
  }
  return height;
}

function paneEnd({ title, lines, offset }: NonNullable<TopFrame['pane']>, height: number): string {
  const below = lines.length - Math.max(0, Math.min(offset, lines.length - height)) - height;
  const more = below > 0 ? `${below} more lines below` : '';
  return [title, more].filter((each) => each !== '').join(': ');
}

/** Keys and their actions, most important first. */
function hints(frame: TopFrame): readonly (readonly [string, string])[] {
  const { pane, feed, filters, isPaused } = frame;
  const can = frame.can();
  if (pane !== null)
    return [
      ['Esc', 'back'],
      ...(can.has('enter') ? [['Enter', 'client'] as const] : []),
      ...(can.has('l') ? [['l', 'lookups'] as const] : []),
      ...(can.has('t') ? [['t', 'trace'] as const] : []),
      ...(pane.title === '' ? [['y', 'command'] as const] : []),
      ['q', 'quit'],
    ];
  return [
    ...(can.has('enter') ? [['Enter', 'details'] as const] : []),
    ['/', 'filter'],
    ...(filters.length > 0 ? [['Esc', 'no filter'] as const] : []),
    ['s', 'sort'],
    ['p', isPaused ? 'go on' : 'pause'],
    ...(feed.pace === null ? [] : [['+-', 'speed'] as const]),
    ...(can.has('l') ? [['l', 'lookups'] as const] : []),
    ...(can.has('t') ? [['t', 'trace'] as const] : []),
    ['y', 'command'],
    ['w', 'span'],
    ['?', 'help'],
    ['q', 'quit'],
  ];
}

function drawLast(grid: CellGrid, row: number, frame: TopFrame, instead: string): void {
  const { prompt, message } = frame;
  const width = grid.columns - 2;
  if (prompt !== null) return drawPrompt(grid, row, prompt);
  if (message !== '') return void grid.text(1, row, message, STYLE.warn, width);
  if (instead !== '') return void grid.text(1, row, instead, STYLE.dim, width);
  let column = 1;
  for (const [key, does] of hints(frame)) {
    if (column + key.length + 1 + does.length > grid.columns) continue;
    column = grid.text(column, row, key, STYLE.accent);
    column = 2 + grid.text(column, row, ` ${does}`, STYLE.dim);
  }
}

function drawPrompt(grid: CellGrid, row: number, prompt: FilterPrompt): void {
  const width = grid.columns - 2;
  const { text, cursor, mistake } = prompt;
  const offers = prompt.offers.join(' ');
  // If the line does not fit the screen, shows the part around the cursor.
  const from = Math.max(0, cursor - width + 2);
  grid.fill(0, row - 1, grid.columns, 0);
  const hint =
    mistake !== '' && text !== ''
      ? mistake
      : `namespace=shop not rcode=NXDOMAIN, or a part of a name. ${offers === '' ? '' : `Tab: ${offers}`}`;
  grid.text(1, row - 1, hint, mistake !== '' && text !== '' ? STYLE.warn : STYLE.dim, width);
  grid.text(0, row, '/', STYLE.accent);
  grid.text(1, row, text.slice(from), STYLE.plain, width);
  grid.restyle(1 + cursor - from, row, 1, (style) => style | SELECTED);
}
