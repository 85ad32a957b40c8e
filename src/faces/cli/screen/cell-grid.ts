/** The cells in a full-screen view. Typed arrays hold one character and one style for each. */
import { oneLine } from '../../../server/base/visible.ts';

/** Character of an empty cell. */
export const BLANK = 32;

/** Replaces any characters that may not be exactly one column wide. */
const REPLACEMENT = 0xfffd;

/**
 * Characters that are one column wide on every terminal. DNS names are ASCII, and our own texts add arrows, dots and
 * bars. Any other character could shift the rest of its row.
 */
const NARROW: readonly (readonly [from: number, to: number])[] = [
  [0x20, 0x7e],
  [0xa1, 0x2ff],
  [0x370, 0x482],
  [0x48a, 0x52f],
  [0x2010, 0x2027],
  [0x2030, 0x205e],
  [0x20a0, 0x20bf],
  [0x2190, 0x2193],
  [0x21d0, 0x21d5],
  [0x2200, 0x22ff],
  [0x2500, 0x25a1],
  [0x25b2, 0x25d7],
  [0x2713, 0x2718],
  [0x2800, 0x28ff],
];

/** Rows and columns of cells. Drawing outside them has no effect. */
export class CellGrid {
  readonly columns: number;
  readonly rows: number;
  /** Code points. */
  readonly characters: Uint32Array;
  /** Style numbers from `STYLE`, optionally with `SELECTED`. */
  readonly styles: Uint8Array;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
    this.characters = new Uint32Array(columns * rows).fill(BLANK);
    this.styles = new Uint8Array(columns * rows);
  }

  clear(): void {
    this.characters.fill(BLANK);
    this.styles.fill(0);
  }

  /**
   * Draws untrusted text with control characters escaped and exactly one cell per character.
   * @param width available columns; longer text ends in `…`
   * @returns the column after the last character
   */
  text(column: number, row: number, text: string, style: number, width: number = Infinity): number {
    if (row < 0 || row >= this.rows) return column;
    const end = Math.min(this.columns, column + width);
    let at = column;
    for (const character of oneLine(text)) {
      if (at >= end) {
        if (end > column && end <= this.columns) this.#put(end - 1, row, 0x2026, style);
        return end;
      }
      if (at >= 0) this.#put(at, row, narrow(character.codePointAt(0)!), style);
      at++;
    }
    return at;
  }

  restyle(column: number, row: number, width: number, style: (old: number) => number): void {
    if (row < 0 || row >= this.rows) return;
    const end = row * this.columns + Math.min(this.columns, column + width);
    for (let at = row * this.columns + column; at < end; at++)
      this.styles[at] = style(this.styles[at]!);
  }

  fill(column: number, row: number, width: number, style: number): void {
    if (row < 0 || row >= this.rows) return;
    const end = Math.min(this.columns, column + width);
    for (let at = column; at < end; at++) this.#put(at, row, BLANK, style);
  }

  #put(column: number, row: number, character: number, style: number): void {
    const at = row * this.columns + column;
    this.characters[at] = character;
    this.styles[at] = style;
  }
}

function narrow(codePoint: number): number {
  if (codePoint >= 0x20 && codePoint <= 0x7e) return codePoint;
  return NARROW.some(([from, to]) => codePoint >= from && codePoint <= to)
    ? codePoint
    : REPLACEMENT;
}
