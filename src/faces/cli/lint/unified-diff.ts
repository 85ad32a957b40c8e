/** Prints file changes like `diff -u`. */
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { coloured } from '../terminal.ts';

/** A file before and after. */
export interface TextChange {
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** The number of context lines around a change, as in `diff -u`. */
const CONTEXT = 3;
/** Limit on edits, because the library's running time grows with lines times edits. */
const EDITS_MAX = 4000;

const GREEN = 32;
const RED = 31;

/** Returns the diff with file names, or just the file names if there are more than 4000 edits. */
export function unifiedDiff({ file, before, after }: TextChange, colour: boolean): string {
  const patch = createTwoFilesPatch(file, file, before, after, undefined, undefined, {
    context: CONTEXT,
    headerOptions: FILE_HEADERS_ONLY,
    maxEditLength: EDITS_MAX,
  });
  if (patch === undefined)
    return `--- ${file}\n+++ ${file}\nMore than ${EDITS_MAX} lines change.\n`;
  return colour ? patch.split('\n').map(paint).join('\n') : patch;
}

function paint(line: string): string {
  if (line.startsWith('+') && !line.startsWith('+++ ')) return coloured(line, GREEN);
  if (line.startsWith('-') && !line.startsWith('--- ')) return coloured(line, RED);
  return line;
}
