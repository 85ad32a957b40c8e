/** Lines of styled text, for both screen cells and plain output. */
import { oneLine } from '../../../server/base/visible.ts';
import type { Paint } from '../page.ts';
import type { CellGrid } from './cell-grid.ts';
import { STYLE, type StyleName } from './cell-style.ts';

export type StyledSpan = readonly [text: string, style: StyleName];
/** A line, from left to right. */
export type StyledLine = readonly StyledSpan[];

export function plainLine(text: string): StyledLine {
  return [[text, 'plain']];
}

/**
 * Draws a line, which is cut off at the right.
 * @returns the column after it
 */
export function drawLine(
  grid: CellGrid,
  column: number,
  row: number,
  line: StyledLine,
  width: number = grid.columns - column,
): number {
  const end = column + width;
  let at = column;
  for (const [text, style] of line) {
    if (at >= end) break;
    at = grid.text(at, row, text, STYLE[style], end - at);
  }
  return at;
}

/** Formats a line for plain output, using the same colours as other commands. */
export function paintLine(line: StyledLine, paint: Paint): string {
  const painted: Readonly<Record<StyleName, (text: string) => string>> = {
    plain: (text) => text,
    dim: paint.dim,
    strong: paint.strong,
    good: paint.good,
    warn: paint.warn,
    bad: paint.bad,
    accent: paint.strong,
    title: paint.strong,
    heading: paint.strong,
    bar: paint.strong,
  };
  const last = line.findLastIndex(([text]) => text.trim() !== '');
  return line
    .slice(0, last + 1)
    .map(([text, style], at) => painted[style](at === last ? text.trimEnd() : text))
    .join('');
}

export function lineWidth(line: StyledLine): number {
  return line.reduce((sum, [text]) => sum + text.length, 0);
}

/** Fits text into exactly `width` columns. Control characters are escaped, and text that is too long ends in `…`. */
export function fit(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const safe = oneLine(text);
  if (safe.length > width) return width < 1 ? '' : `${safe.slice(0, width - 1)}…`;
  return align === 'right' ? safe.padStart(width) : safe.padEnd(width);
}
