/** Formats text for a terminal, including its width, colours and line breaks. */
import { coloured, printedLength, uncoloured } from './terminal.ts';

export interface Page {
  readonly paint: Paint;
  /** Maximum line length, except for wide rows. */
  readonly columns: number;
  readonly wide: boolean;
  /** True if there is no room for columns side by side, as on a phone or in a split window. */
  readonly narrow: boolean;
}

export interface TextOptions {
  readonly colour: boolean;
  readonly wide: boolean;
  /** Terminal width. */
  readonly columns: number;
}

/** From this width on, records stay on one line regardless of their length, for programs to read. */
export const ONE_LINE_COLUMNS = 100;

/** Limits the width, because words do not fit narrower lines and wider ones are hard to read. */
export function pageFor({ colour, wide, columns }: TextOptions): Page {
  const width = Math.min(120, Math.max(40, columns));
  return { paint: paintFor(colour), columns: width, wide, narrow: width < 72 };
}

/** Colours by meaning, which the words express as well. */
export interface Paint {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  dim(text: string): string;
  strong(text: string): string;
}

/** Adds colour marks for `harmless`. Without `colour`, the text is unchanged. */
export function paintFor(colour: boolean): Paint {
  const paint =
    (code: number) =>
    (text: string): string =>
      colour ? coloured(text, code) : text;
  return { good: paint(32), bad: paint(31), warn: paint(33), dim: paint(2), strong: paint(1) };
}

/** Breaks text between words, so that each line and its indent fit the page. */
export function wrap(text: string, indent: string, { columns }: Pick<Page, 'columns'>): string[] {
  const lines: string[] = [];
  let line = indent;
  let empty = true;
  // A number and its percent sign stay together.
  const words = text
    .split(/ (?!%)/)
    .flatMap((word) => pieces(word, columns - printedLength(indent)));
  for (const word of words) {
    if (!empty && printedLength(line) + 1 + printedLength(word) > columns) {
      lines.push(line);
      line = ' '.repeat(printedLength(indent));
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  lines.push(line);
  return lines;
}

/** Below this width, explanations go below their terms. */
const BESIDE = 24;
/** Indent of text placed below its term. */
const BELOW = '    ';

/**
 * Puts text to the right of `left`, starting at column `indent`, or below it on narrow terminals.
 * @returns lines
 */
export function beside(
  left: string,
  text: string,
  indent: number,
  page: Pick<Page, 'columns'>,
): string[] {
  const margin = /^ */.exec(left)![0];
  if (printedLength(left) > indent || page.columns - indent < BESIDE)
    return [...wrap(left.trim(), margin, page), ...wrap(text, margin + BELOW, page)];
  const [first = '', ...more] = wrap(text, ' '.repeat(indent), page);
  return [left + first.slice(printedLength(left)), ...more];
}

/** Formats Markdown for a terminal by filling paragraphs and leaving tables and code unchanged. */
export function setMarkdown(markdown: string, page: Pick<Page, 'columns'>): string {
  const lines: string[] = [];
  let paragraph = '';
  let inCode = false;
  const end = (): void => {
    if (paragraph === '') return;
    const [mark = ''] = /^(?:[-*]|\d+\.) /.exec(paragraph) ?? [];
    const [first = '', ...more] = wrap(paragraph.slice(mark.length), ' '.repeat(mark.length), page);
    lines.push(mark + first.slice(mark.length), ...more);
    paragraph = '';
  };
  for (const line of markdown.split('\n')) {
    const isFence = line.startsWith('```');
    const isListItem = /^(?:[-*]|\d+\.) /.test(paragraph);
    if (isListItem && /^\s+\S/.test(line)) paragraph += ` ${line.trimStart()}`;
    else if (inCode || isFence || line === '' || /^(?:#|\||\s)/.test(line)) {
      end();
      lines.push(...(!inCode && line.startsWith('#') ? wrap(line, '', page) : [line]));
      if (isFence) inCode = !inCode;
    } else if (paragraph === '' || /^(?:\*\*|[-*] |\d+\. )/.test(line)) {
      end();
      paragraph = line;
    } else paragraph += ` ${line}`;
  }
  end();
  return lines.join('\n');
}

/** Truncates words that are longer than a line, and removes their colours. */
function pieces(word: string, width: number): string[] {
  if (printedLength(word) <= width) return [word];
  const plain = uncoloured(word);
  const parts: string[] = [];
  for (let i = 0; i < plain.length; i += width) parts.push(plain.slice(i, i + width));
  return parts;
}

/** Truncates the text to `width` characters, with `…` at the end. */
export function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** The lines of a table. By default, all columns but the first have numbers, which are on the right. */
export function aligned(
  rows: readonly (readonly string[])[],
  { gap = '  ', numbers = true }: { readonly gap?: string; readonly numbers?: boolean } = {},
): string[] {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((cells) => cells[at]!.length)));
  const padded = (cell: string, at: number): string =>
    numbers && at > 0 ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
  return rows.map((cells) => cells.map(padded).join(gap).trimEnd());
}

/** Fits as many parts on a line as possible. */
export function packed(parts: readonly string[], room: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && printedLength(last) + 2 + printedLength(part) <= room)
      lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(part);
  }
  return lines;
}
