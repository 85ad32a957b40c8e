/** To avoid flicker, only writes cells that have changed since the last frame. */
import { BLANK, type CellGrid } from './cell-grid.ts';

/** Unchanged cells between two changes are rewritten if moving the cursor would take just as many bytes. */
const GAP_MAX = 6;

/** Synchronized output. Terminals that support it show the frame all at once, and others ignore it. */
const BEGIN = '\u001b[?2026h';
const END = '\u001b[?2026l';

/**
 * The escape sequences that turn one frame into the next.
 * @param shown the current screen; if null, it is unknown and cleared first
 * @param sequences escape sequences by style
 * @returns empty if nothing changed
 */
export function screenUpdate(
  shown: CellGrid | null,
  next: CellGrid,
  sequences: readonly string[],
): string {
  const { columns, rows } = next;
  const isSame = (at: number): boolean =>
    (shown === null ? BLANK : shown.characters[at]) === next.characters[at] &&
    (shown === null ? 0 : shown.styles[at]) === next.styles[at];
  let text = shown === null ? '\u001b[0m\u001b[2J' : '';
  let style = shown === null ? 0 : -1;
  for (let row = 0; row < rows; row++) {
    const end = (row + 1) * columns;
    let at = row * columns;
    for (;;) {
      while (at < end && isSame(at)) at++;
      if (at >= end) break;
      let stop = at + 1;
      for (let same = 0, to = stop; to < end && same <= GAP_MAX; to++) {
        same = isSame(to) ? same + 1 : 0;
        if (same === 0) stop = to + 1;
      }
      text += `\u001b[${row + 1};${at - row * columns + 1}H`;
      for (; at < stop; at++) {
        if (next.styles[at] !== style) {
          style = next.styles[at]!;
          text += sequences[style]!;
        }
        text += String.fromCodePoint(next.characters[at]!);
      }
    }
  }
  return text === '' ? '' : `${BEGIN}${text}\u001b[0m${END}`;
}
