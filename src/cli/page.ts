/** Text for a terminal: its width, its colours, where lines break. */

/** How a text is set. */
export interface Page {
  readonly paint: Paint;
  /** Nothing goes beyond, but in wide rows. */
  readonly columns: number;
  readonly wide: boolean;
}

export interface TextOptions {
  readonly colour: boolean;
  readonly wide: boolean;
  /** Columns of the terminal. */
  readonly columns: number;
}

/** Narrower than this no table can be, and wider than this nobody likes to read. */
export function pageFor({ colour, wide, columns }: TextOptions): Page {
  return { paint: paintFor(colour), columns: Math.min(120, Math.max(72, columns)), wide };
}

export interface Paint {
  good(text: string): string;
  bad(text: string): string;
  dim(text: string): string;
  strong(text: string): string;
}

const plain: Paint = { good: (t) => t, bad: (t) => t, dim: (t) => t, strong: (t) => t };

const coloured: Paint = {
  good: (text) => `\u001b[32m${text}\u001b[0m`,
  bad: (text) => `\u001b[31m${text}\u001b[0m`,
  dim: (text) => `\u001b[2m${text}\u001b[0m`,
  strong: (text) => `\u001b[1m${text}\u001b[0m`,
};

function paintFor(colour: boolean): Paint {
  return colour ? coloured : plain;
}

/** Breaks text between words so that each line, with its indent, fits the page. */
export function wrap(text: string, indent: string, { columns }: Pick<Page, 'columns'>): string[] {
  const lines: string[] = [];
  let line = indent;
  let empty = true;
  const words = text.split(' ').flatMap((word) => pieces(word, columns - indent.length));
  for (const word of words) {
    if (!empty && visible(line) + 1 + visible(word) > columns) {
      lines.push(line);
      line = ' '.repeat(indent.length);
      empty = true;
    }
    line += empty ? word : ` ${word}`;
    empty = false;
  }
  lines.push(line);
  return lines;
}

/** A word that is longer than a line is cut. */
function pieces(word: string, width: number): string[] {
  if (visible(word) <= width) return [word];
  const parts: string[] = [];
  for (let i = 0; i < word.length; i += width) parts.push(word.slice(i, i + width));
  return parts;
}

export function visible(text: string): number {
  // eslint-disable-next-line no-control-regex -- the escapes are ours
  return text.replace(/\u001b\[\d+m/g, '').length;
}

export function clip(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

export function ms(value: number): string {
  if (value >= 9995) return `${(value / 1000).toFixed(1)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, '') : value.toFixed(0)} ms`;
}

/** Parts side by side, as many on a line as fit. */
export function packed(parts: readonly string[], room: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && visible(last) + 2 + visible(part) <= room)
      lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(part);
  }
  return lines;
}

export function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
