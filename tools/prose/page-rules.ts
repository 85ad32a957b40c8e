/** Layout rules for Markdown pages, which cover openings, line widths and table cell lengths. */
import { cellsOf, proseOf } from './passages.ts';

export interface PageFault {
  readonly line: number;
  readonly rule: string;
  readonly text: string;
}

/** The maximum line width on a page, in columns. */
export const LINE_COLUMNS = 120;
/** The maximum number of sentences in a table cell. */
export const CELL_SENTENCES = 2;

/** The required opening after a page's title. */
export type Opening = 'purpose and command' | 'purpose' | 'free';

/** Reports violations of the layout rules. */
export function pageFaults(page: string, opening: Opening): readonly PageFault[] {
  return [...openingFaults(page, opening), ...lineFaults(page)];
}

function openingFaults(page: string, opening: Opening): PageFault[] {
  if (opening === 'free') return [];
  const lines = page.split('\n').map((text, index) => ({ text, line: index + 1 }));
  const body = lines.slice(1 + lines.findIndex(({ text }) => text.startsWith('# ')));
  const written = body.filter(({ text }) => text.trim() !== '' && !/^<!--.*-->$/.test(text));
  const [first, second] = written;
  const line = first?.line ?? 1;
  const next = lines[line]?.text ?? '';
  if (first === undefined || /^(?:#|\||```|- )/.test(first.text))
    return [{ line, rule: 'opening', text: 'the first line says what the page is for' }];
  if (next !== '')
    return [
      { line, rule: 'opening', text: 'one line says what the page is for, then a blank line' },
    ];
  if (opening === 'purpose and command' && !second?.text.startsWith('```'))
    return [
      { line: second?.line ?? line, rule: 'opening', text: 'a block with what to type follows' },
    ];
  return [];
}

function lineFaults(page: string): PageFault[] {
  const found: PageFault[] = [];
  let fence = '';
  let before = '';
  for (const [index, text] of page.split('\n').entries()) {
    const line = index + 1;
    const mark = /^ *(```+|~~~+)/.exec(text)?.[1];
    if (mark !== undefined && (fence === '' || mark.startsWith(fence))) {
      if (fence === '' && isUnfinished(before))
        found.push({ line, rule: 'sentence ends in code', text: before.slice(-60) });
      fence = fence === '' ? mark : '';
    }
    if (text.length > LINE_COLUMNS && !text.startsWith('|') && !isOneWord(text))
      found.push({ line, rule: 'wide line', text: `${text.length} columns` });
    if (fence === '' && text.startsWith('|'))
      for (const cell of cellsOf(text))
        if (sentences(cell) > CELL_SENTENCES)
          found.push({
            line,
            rule: 'long cell',
            text: `${sentences(cell)} sentences in a table cell`,
          });
    if (text.trim() !== '') before = text;
    else before = before === '' ? '' : `${before}`;
  }
  return found;
}

/** True for a line that cannot be broken, such as a link. */
const isOneWord = (text: string): boolean =>
  !text
    .trim()
    .replace(/^[-*>] /, '')
    .includes(' ');

/** True for a paragraph that continues after a code block, because it ends without punctuation. */
const isUnfinished = (line: string): boolean =>
  /[a-z,]$/.test(line) && !/^(?:#|\||\s*[-*] |```|<!--|\s*\d+\. )/.test(line);

/** Counts the sentences in a table cell. */
export function sentences(cell: string): number {
  const text = proseOf(cell).trim();
  if (text === '') return 0;
  return text.split(/[.!?](?=\s+[A-Z`[])/).length;
}
